import { isTerminal, TASK_STATES, type TaskState } from '../../../machines/protocol/states.ts'
import type { Database } from '../driver.ts'

const OPEN = Object.keys(TASK_STATES)
  .filter(state => !isTerminal(state as TaskState))
  .map(state => `'${state}'`)
  .join(', ')

/** Finds every tenant by one step in the index of scopes. */
const TENANTS = `
  WITH RECURSIVE tenants (tenant) AS (
    SELECT min(tenant) FROM scopes UNION ALL SELECT (SELECT min(tenant) FROM scopes WHERE tenant > tenants.tenant) FROM tenants WHERE tenants.tenant IS NOT NULL
  )`

/** Queries that count open tasks: all, or by indexes those of a principal, of a tenant, or of both; and one that gives their states. */
export function openCounts(database: Database) {
  const tasks = `CROSS JOIN tasks ON tasks.scope = scopes.scope AND tasks.state IN (${OPEN})`
  return {
    all: database.prepare('SELECT count(*) AS count FROM tasks WHERE endedAtMs IS NULL'),
    states: database.prepare(
      'SELECT context, task, state FROM tasks WHERE endedAtMs IS NULL AND (context, task) > (?, ?) ORDER BY context, task LIMIT ?'
    ),
    ofPrincipal: database.prepare(`
      ${TENANTS} SELECT count(*) AS count FROM tenants CROSS JOIN scopes ON scopes.tenant = tenants.tenant AND scopes.principal = ? ${tasks}`),
    ofTenant: database.prepare(`SELECT count(*) AS count FROM scopes ${tasks} WHERE scopes.tenant = ?`),
    ofScope: database.prepare(
      `SELECT count(*) AS count FROM scopes ${tasks} WHERE scopes.tenant = ? AND scopes.principal = ?`
    )
  }
}
