import type { Database } from './driver.ts'

const TABLES = { scope: 'scopes', context: 'contexts', task: 'tasks' } as const

type Numbered = keyof typeof TABLES

/** Gives the next scope, context or task of a file its number. */
export class Numbers {
  readonly #newest: ReadonlyMap<Numbered, () => number>
  readonly #last = new Map<Numbered, number>()

  constructor(database: Database) {
    this.#newest = new Map((Object.keys(TABLES) as Numbered[]).map(kind => {
      const statement = database.prepare(`SELECT max(${kind}) AS newest FROM ${TABLES[kind]}`)
      return [kind, () => Number(statement.get()?.newest ?? 0)]
    }))
  }

  /** One more than the greatest yet. */
  next(kind: Numbered): number {
    const number = (this.#last.get(kind) ?? this.#newest.get(kind)?.() ?? 0) + 1
    this.#last.set(kind, number)
    return number
  }

  /** Looks at the file again before it gives the next. */
  forget(): void {
    this.#last.clear()
  }
}
