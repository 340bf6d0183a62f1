import type { CountChange } from '../../rows/changes.ts'
import { unlessDamaged } from '../../rows/damage.ts'
import { storedText } from '../../rows/stored-text.ts'
import type { Database, Statement } from '../driver.ts'
import type { Reading } from '../rows/table.ts'
import type { Tables, TransitionRow } from '../rows/tables.ts'

/** The writer of a file: it has only one. */
const WRITER = 0

/** Adds counts of transitions. The caller opens the transaction. */
export class TransitionWriter {
  readonly #table: Tables['transitions']
  readonly #find: Reading<TransitionRow>
  readonly #drop: Statement

  constructor(database: Database, { transitions }: Tables) {
    const key = ['chart', 'previous', 'taken', 'writer'] as const
    this.#table = transitions
    this.#find = transitions.reading(key)
    this.#drop = database.prepare(`DELETE FROM transitions WHERE ${key.map(column => `${column} = ?`).join(' AND ')}`)
  }

  /** A damaged row begins again. */
  add({ counts, atMs }: CountChange): true {
    for (const { chart, count, timed, ms, ...names } of counts) {
      const [previous, taken] = [storedText(names.previous), storedText(names.taken)]
      const key = [chart, previous, taken, WRITER] as const
      const before = unlessDamaged(() => this.#find.one(...key)) ?? { count: 0, timed: 0, ms: 0 }
      this.#drop.run(...key)
      this.#table.insert({
        chart,
        previous,
        taken,
        writer: WRITER,
        count: before.count + count,
        timed: before.timed + timed,
        ms: before.ms + ms,
        atMs
      })
    }
    return true
  }
}
