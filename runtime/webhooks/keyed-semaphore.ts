/**
 * Semaphore with a limit per name. A slot has several names and needs a place in each. Slots that wait for a full name are served in
 * order, and do not delay slots without that name.
 */
export class KeyedSemaphore {
  readonly #limitOf: (name: string) => number
  readonly #running = new Map<string, number>()
  readonly #waiting = new Map<string, Set<Slot>>()

  constructor(limitOf: (name: string) => number) {
    this.#limitOf = limitOf
  }

  /** Runs a slot as soon as all of its names have a free place. */
  enter(slot: Slot): void {
    const full = slot.names.find(name => !this.#hasRoom(name))
    if (full === undefined) return this.#run(slot)
    const waiting = this.#waiting.get(full) ?? new Set()
    this.#waiting.set(full, waiting.add(slot))
  }

  /** Removes a waiting slot. */
  withdraw(slot: Slot): void {
    for (const name of slot.names) this.#forget(name, slot)
  }

  /** Number of running slots with a name. */
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

/** An asynchronous function for a {@link KeyedSemaphore}. */
export interface Slot {
  readonly names: readonly string[]
  /** Never rejects. */
  readonly run: () => Promise<void>
}
