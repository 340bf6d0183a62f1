/** Items of several users. Users take turns; the items of one user keep their order. */
export class FairQueue<T> {
  readonly #waiting = new Map<string, T[]>()
  #size = 0

  get size(): number {
    return this.#size
  }

  add(user: string, item: T): void {
    this.#size += 1
    const before = this.#waiting.get(user)
    if (before) before.push(item)
    else this.#waiting.set(user, [item])
  }

  /** The oldest item of the user whose turn it is. */
  take(): T | undefined {
    for (const [user, items] of this.#waiting) {
      const item = items.shift()
      this.#waiting.delete(user)
      if (items.length > 0) this.#waiting.set(user, items)
      this.#size -= 1
      return item
    }
    return undefined
  }
}
