import { isTerminal, TASK_STATES, type TaskState } from '../../../machines/protocol/states.ts'
import type { TaskChoice, TaskSize } from '../../../runtime/store/store.ts'
import type { Database } from '../driver.ts'
import { originalText, storedText } from '../rows/stored-text.ts'

const OPEN = Object.keys(TASK_STATES).filter(state => !isTerminal(state as TaskState)).map(state => `'${state}'`).join(', ')

/** Finds every tenant by one step in the index of scopes. */
const TENANTS = `
  WITH RECURSIVE tenants (tenant) AS (
    SELECT min(tenant) FROM scopes UNION ALL SELECT (SELECT min(tenant) FROM scopes WHERE tenant > tenants.tenant) FROM tenants WHERE tenants.tenant IS NOT NULL
  )`

/** Queries that count open tasks: all, or by indexes those of a principal, of a tenant, or of both. */
export function openCounts(database: Database) {
  const tasks = `CROSS JOIN tasks ON tasks.scope = scopes.scope AND tasks.state IN (${OPEN})`
  return {
    all: database.prepare('SELECT count(*) AS count FROM tasks WHERE endedAtMs IS NULL'),
    ofPrincipal: database.prepare(`
      ${TENANTS} SELECT count(*) AS count FROM tenants CROSS JOIN scopes ON scopes.tenant = tenants.tenant AND scopes.principal = ? ${tasks}`),
    ofTenant: database.prepare(`SELECT count(*) AS count FROM scopes ${tasks} WHERE scopes.tenant = ?`),
    ofScope: database.prepare(`SELECT count(*) AS count FROM scopes ${tasks} WHERE scopes.tenant = ? AND scopes.principal = ?`)
  }
}

/** `octet_length` reads only the row's header, so that the pages of long texts are not read. */
const SIZES = `
  SELECT taskId,
    (SELECT total(octet_length(body)) FROM events WHERE events.task = tasks.task)
      + (SELECT total(octet_length(body)) FROM messages WHERE messages.task = tasks.task) AS bytes,
    (SELECT total(octet_length(body)) FROM journal WHERE journal.task = tasks.task) AS journalBytes
  FROM tasks`

/** The `+` makes SQLite look up the ids instead of scanning the scope's tasks. */
const OF_IDS = `${SIZES} WHERE +scope = ? AND taskId IN (SELECT value FROM json_each(?)) ORDER BY time DESC, taskId DESC`

/** Prepares the query of stored sizes; `of` is the number of the scope, or of the context if its newest tasks are requested. */
export function taskSizes(database: Database): (of: number, choice: TaskChoice) => TaskSize[] {
  const ofIds = database.prepare(OF_IDS)
  const newest = database.prepare(`${SIZES} WHERE context = ? ORDER BY task DESC LIMIT ?`)
  return (of, choice) => {
    const rows = 'newest' in choice ? newest.all(of, choice.newest) : ofIds.all(of, JSON.stringify(choice.taskIds.map(storedText)))
    return (rows as unknown as TaskSize[]).map(({ taskId, bytes, journalBytes }) => ({ taskId: originalText(taskId), bytes, journalBytes }))
  }
}
