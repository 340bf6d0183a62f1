/** The newest of a sequence, numbered from 1. */
export class Ring<T> {
  readonly #capacity: number
  readonly #items: T[] = []
  #last = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** The number of the newest; 0 before the first. */
  get last(): number {
    return this.#last
  }

  /** The number of the oldest that is still here. */
  get first(): number {
    return Math.max(1, this.#last - this.#capacity + 1)
  }

  push(item: T): void {
    this.#items[this.#last % this.#capacity] = item
    this.#last += 1
  }

  /** The one of a number from `first` to `last`. */
  at(number: number): T | undefined {
    return this.#items[(number - 1) % this.#capacity]
  }

  /** Those that are still here from a number on, oldest first, at most `limit`. */
  from(number: number, limit = Infinity): T[] {
    const items: T[] = []
    for (let at = Math.max(number, this.first); at <= this.#last && items.length < limit; at += 1) {
      items.push(this.#items[(at - 1) % this.#capacity] as T)
    }
    return items
  }
}
