/** The rows that were used last, by name, so that they need not be read again; the longest unused make room. */
export class RowCache<Row> {
  readonly #rows = new Map<string, Row>()
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  /** The row of this name, from here or by reading it. */
  get(name: string, read: () => Row | undefined): Row | undefined {
    const row = this.#rows.get(name) ?? read()
    if (row !== undefined) this.set(name, row)
    return row
  }

  set(name: string, row: Row): void {
    this.#rows.delete(name)
    this.#rows.set(name, row)
    for (const oldest of this.#rows.keys()) {
      if (this.#rows.size <= this.#limit) break
      this.#rows.delete(oldest)
    }
  }

  clear(): void {
    this.#rows.clear()
  }
}
