/** A ring buffer of the newest items, numbered from 1. */
export class Ring<T> {
  readonly #capacity: number
  readonly #items: (T | undefined)[] = []
  #last = 0
  #dropped = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** The number of the newest item; 0 before the first. */
  get last(): number {
    return this.#last
  }

  /** The number of the oldest item kept. */
  get first(): number {
    return Math.max(this.#dropped, this.#last - this.#capacity) + 1
  }

  /** Adds an item. Returns the one that it replaces, if the buffer is full. */
  push(item: T): T | undefined {
    const slot = this.#last % this.#capacity
    const replaced = this.#items[slot]
    this.#items[slot] = item
    this.#last += 1
    return replaced
  }

  /** Drops the oldest item and returns it. */
  shift(): T | undefined {
    const { first } = this
    if (first > this.#last) return undefined
    const slot = (first - 1) % this.#capacity
    const oldest = this.#items[slot]
    this.#items[slot] = undefined
    this.#dropped = first
    return oldest
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
