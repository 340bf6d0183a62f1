import type { TaskChoice, TaskSize } from '../../../runtime/store/store.ts'
import type { Database } from '../driver.ts'
import { originalText, storedText } from '../rows/stored-text.ts'

/** `octet_length` looks at a row's header alone, so that pages of long texts are not read. */
const SIZES = `
  SELECT taskId,
    (SELECT total(octet_length(body)) FROM events WHERE events.task = tasks.task)
      + (SELECT total(octet_length(body)) FROM messages WHERE messages.task = tasks.task) AS bytes,
    (SELECT total(octet_length(body)) FROM journal WHERE journal.task = tasks.task) AS journalBytes
  FROM tasks`

/** The `+` has SQLite look up the ids, rather than go through all tasks of the scope. */
const OF_IDS = `${SIZES} WHERE +scope = ? AND taskId IN (SELECT value FROM json_each(?)) ORDER BY time DESC, taskId DESC`

/** Prepares the query of how much is stored of tasks; `of` is the number of their scope, or of their context if its newest are asked for. */
export function taskSizes(database: Database): (of: number, choice: TaskChoice) => TaskSize[] {
  const ofIds = database.prepare(OF_IDS)
  const newest = database.prepare(`${SIZES} WHERE context = ? ORDER BY task DESC LIMIT ?`)
  return (of, choice) => {
    const rows = 'newest' in choice ? newest.all(of, choice.newest) : ofIds.all(of, JSON.stringify(choice.taskIds.map(storedText)))
    return (rows as unknown as TaskSize[]).map(({ taskId, bytes, journalBytes }) => ({ taskId: originalText(taskId), bytes, journalBytes }))
  }
}
