/** A user with waiting items, and the accumulated cost. */
interface User<T> {
  readonly items: T[]
  cost: number
}

/**
 * A fair queue for items of several users. The next item belongs to the user with the lowest cost; each user's items keep their order.
 * So a user with few cheap items does not wait for another with many or expensive ones.
 */
export class LeastCostQueue<T> {
  readonly #waiting = new Map<string, User<T>>()
  /** The costs of users without waiting items. */
  readonly #costs = new Map<string, number>()
  #size = 0
  #least = 0
  readonly #most: number
  #last: { readonly name: string; readonly user: User<T> } | undefined

  /** `most` bounds the cost of one item, since a measured time may include other processes. */
  constructor(most = Infinity) {
    this.#most = most
  }

  get size(): number {
    return this.#size
  }

  add(name: string, item: T): void {
    this.#size += 1
    const user = this.#waiting.get(name)
    if (user) user.items.push(item)
    else this.#waiting.set(name, { items: [item], cost: Math.max(this.#least, this.#costs.get(name) ?? 0) })
  }

  /** Removes the next item, if it is wanted. {@link charge} then sets its cost. */
  take(isWanted: (item: T) => boolean = () => true): T | undefined {
    this.#last = undefined
    for (const [name, user] of this.#waiting) if (!this.#last || user.cost < this.#last.user.cost) this.#last = { name, user }
    if (!this.#last || !isWanted(this.#last.user.items[0] as T)) return undefined
    const { name, user } = this.#last
    this.#least = user.cost
    this.#size -= 1
    const item = user.items.shift()
    if (user.items.length === 0) this.#waiting.delete(name)
    return item
  }

  /** Adds a cost to the user of the last taken item. */
  charge(cost: number): void {
    if (!this.#last) return
    const { name, user } = this.#last
    user.cost += Math.min(cost, this.#most)
    if (this.#waiting.size === 0) this.#costs.clear()
    if (user.items.length === 0) this.#costs.set(name, user.cost)
  }
}
