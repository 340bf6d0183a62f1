import type { Database, Statement } from '../driver.ts'
import type { Reading } from '../rows/table.ts'
import type { JournalTableRow, StoredTaskRow, Tables } from '../rows/tables.ts'

/** Writes journals: a row replaces the one with its key, and a task's rows are deleted when it ends. */
export class JournalWriter {
  readonly #tables: Tables
  readonly #find: Reading<JournalTableRow>
  readonly #change: (row: JournalTableRow) => void
  readonly #drop: Statement
  readonly #newest: Statement

  constructor(database: Database, tables: Tables) {
    this.#tables = tables
    this.#find = tables.journal.reading(['task', 'key'])
    this.#change = tables.journal.updating(['body'], ['entry'])
    this.#drop = database.prepare('DELETE FROM journal WHERE task = ?')
    this.#newest = database.prepare('SELECT max(entry) AS newest FROM journal')
  }

  /** Writes a row of a live task; ignores other tasks. */
  write(task: StoredTaskRow | undefined, { key, body }: { readonly key: string; readonly body: string }): void {
    if (!task || task.endedAtMs !== null) return
    const before = this.#find.one(task.task, key)
    if (before) this.#change({ ...before, body })
    else this.#tables.journal.insert({ entry: Number(this.#newest.get()?.newest) + 1, task: task.task, key, body })
  }

  /** Deletes the journal of a task. */
  forget({ task }: StoredTaskRow): void {
    this.#drop.run(task)
  }
}
