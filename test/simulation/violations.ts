/** What must not be, as far as it has been seen. */
export class Violations {
  readonly #found: string[] = []

  add(what: string): void {
    this.#found.push(what)
  }

  /** Throws if there is any. */
  check(): void {
    if (this.#found.length > 0) throw new Error(this.#found.slice(0, 5).join('\n'))
  }
}
