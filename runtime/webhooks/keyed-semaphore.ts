/**
 * Lets only so many run at once: of all, and of those that have a name in common. Who finds no room waits, first come first
 * served, without holding up those that have none of the full names.
 */
export class KeyedSemaphore {
  readonly #limitOf: (name: string) => number
  readonly #running = new Map<string, number>()
  readonly #waiting = new Map<string, Set<Slot>>()

  constructor(limitOf: (name: string) => number) {
    this.#limitOf = limitOf
  }

  /** Runs a slot as soon as all of its names have room: now, or when others leave. */
  enter(slot: Slot): void {
    const full = slot.names.find(name => !this.#hasRoom(name))
    if (full === undefined) return this.#run(slot)
    const waiting = this.#waiting.get(full) ?? new Set()
    this.#waiting.set(full, waiting.add(slot))
  }

  /** Takes back a slot that waits. */
  withdraw(slot: Slot): void {
    for (const name of slot.names) this.#forget(name, slot)
  }

  /** How many run under a name. */
  runningOf(name: string): number {
    return this.#running.get(name) ?? 0
  }

  #run(slot: Slot): void {
    for (const name of slot.names) this.#running.set(name, this.runningOf(name) + 1)
    void slot.run().finally(() => this.#leave(slot))
  }

  #leave({ names }: Slot): void {
    for (const name of names) {
      const running = this.runningOf(name) - 1
      if (running === 0) this.#running.delete(name)
      else this.#running.set(name, running)
    }
    for (const name of names) this.#admit(name)
  }

  #admit(name: string): void {
    for (const slot of this.#waiting.get(name) ?? []) {
      if (!this.#hasRoom(name)) return
      this.#forget(name, slot)
      this.enter(slot)
    }
  }

  #forget(name: string, slot: Slot): void {
    const waiting = this.#waiting.get(name)
    if (waiting?.delete(slot) && waiting.size === 0) this.#waiting.delete(name)
  }

  #hasRoom(name: string): boolean {
    return this.runningOf(name) < this.#limitOf(name)
  }
}

/** Something that runs when there is room for it. */
export interface Slot {
  readonly names: readonly string[]
  /** Never rejects. */
  readonly run: () => Promise<void>
}
