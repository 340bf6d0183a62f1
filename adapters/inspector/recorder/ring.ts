/** A ring buffer of the newest items, numbered from 1. */
export class Ring<T> {
  readonly #capacity: number
  readonly #items: T[] = []
  #last = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** The number of the newest item; 0 before the first. */
  get last(): number {
    return this.#last
  }

  /** The number of the oldest item kept. */
  get first(): number {
    return Math.max(1, this.#last - this.#capacity + 1)
  }

  push(item: T): void {
    this.#items[this.#last % this.#capacity] = item
    this.#last += 1
  }

  /** The item with a number from `first` to `last`. */
  at(number: number): T | undefined {
    return this.#items[(number - 1) % this.#capacity]
  }

  /** The kept items from a number on, oldest first, at most `limit`. */
  from(number: number, limit = Infinity): T[] {
    const items: T[] = []
    for (let at = Math.max(number, this.first); at <= this.#last && items.length < limit; at += 1) {
      items.push(this.#items[(at - 1) % this.#capacity] as T)
    }
    return items
  }
}
