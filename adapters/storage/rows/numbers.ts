import type { Database, Statement } from '../driver.ts'

type Numbered = 'scope' | 'context' | 'task'

/** Gives the next scope, context or task of a file its number. */
export class Numbers {
  readonly #newest: Readonly<Record<Numbered, Statement>>
  readonly #last = new Map<Numbered, number>()

  constructor(database: Database) {
    const newest = (kind: Numbered, table: string) => database.prepare(`SELECT max(${kind}) AS newest FROM ${table}`)
    this.#newest = { scope: newest('scope', 'scopes'), context: newest('context', 'contexts'), task: newest('task', 'tasks') }
  }

  /** One more than the greatest yet. */
  next(kind: Numbered): number {
    const number = (this.#last.get(kind) ?? Number(this.#newest[kind].get()?.newest)) + 1
    this.#last.set(kind, number)
    return number
  }

  /** Looks at the file again before it gives the next. */
  forget(): void {
    this.#last.clear()
  }
}
