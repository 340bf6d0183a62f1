/** A user with waiting items, and the accumulated cost. */
interface User<T> {
  readonly items: T[]
  cost: number
}

/**
 * A fair queue for items of several users. The next item belongs to the user with the lowest cost; each user's items
 * keep their order. So a user with few cheap items does not wait for another with many or expensive ones.
 */
export class LeastCostQueue<T> {
  readonly #waiting = new Map<string, User<T>>()
  /** The costs of users without waiting items. */
  readonly #costs = new Map<string, number>()
  #size = 0
  /**
   * The cost of the user of the last removed item, before it. A user that comes, or may have a turn again, has at least
   * this cost.
   */
  #least = 0
  readonly #most: number

  /**
   * `most` bounds how far behind the others a user is when it comes: it does not pay for what it used while nobody else
   * waited.
   */
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
    else
      this.#waiting.set(name, {
        items: [item],
        cost: Math.min(Math.max(this.#least, this.#costs.get(name) ?? 0), this.#least + this.#most)
      })
  }

  /** The user whose item is next, among those that may have a turn. */
  next(mayHaveTurn: (name: string) => boolean = () => true): string | undefined {
    let next: { readonly name: string; readonly cost: number } | undefined
    for (const [name, { cost }] of this.#waiting)
      if ((!next || cost < next.cost) && mayHaveTurn(name)) next = { name, cost }
    return next?.name
  }

  /** Removes the first item of a user, if it is wanted. {@link charge} then sets its cost. */
  take(name: string, isWanted: (item: T) => boolean = () => true): T | undefined {
    const user = this.#waiting.get(name)
    if (!user || !isWanted(user.items[0] as T)) return undefined
    user.cost = Math.max(user.cost, this.#least)
    this.#least = user.cost
    this.#size -= 1
    const item = user.items.shift()
    if (user.items.length > 0) return item
    this.#waiting.delete(name)
    this.#costs.set(name, user.cost)
    return item
  }

  /** Adds the cost of a removed item to its user, whose cost {@link take} has set. */
  charge(name: string, cost: number): void {
    const user = this.#waiting.get(name)
    if (user) user.cost += cost
    else if (this.#waiting.size === 0) this.#costs.clear()
    else this.#costs.set(name, (this.#costs.get(name) as number) + cost)
  }
}
