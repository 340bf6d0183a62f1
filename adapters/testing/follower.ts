import type { StreamResponse } from '../../machines/protocol/objects.ts'
import type { Caller } from './callers.ts'
import { toldIn, type Told } from './told.ts'
import { turns } from './world.ts'

/** How many turns of the event loop an event may take to come, over a socket too. */
const PATIENCE = 20_000

/** Turns in which an event that should not come would come. */
const QUIET = 8

/** Follows the events of a task through the ends of its process: each comes once, in order. */
export class Follower {
  /** What was told so far. */
  readonly told: Told[] = []
  readonly #taskId: string
  readonly #isOwn: (artifactId: string) => boolean
  #stop = new AbortController()
  #reading: Promise<void> = Promise.resolve()
  #error: unknown

  constructor(taskId: string, isOwn: (artifactId: string) => boolean) {
    this.#taskId = taskId
    this.#isOwn = isOwn
  }

  /** Goes on after what it has heard. */
  follow(caller: Caller): void {
    this.#stop = new AbortController()
    this.#reading = this.#read(caller.events(this.#taskId, this.told.length, this.#stop.signal))
  }

  /** Stops listening. */
  async pause(): Promise<void> {
    this.#stop.abort()
    await this.#reading
  }

  /** Waits until so many events were told, and for a moment whether there are more. Throws what ended its stream before. */
  async settle(count: number): Promise<void> {
    for (let turn = 0; this.told.length < count && turn < PATIENCE && this.#error === undefined; turn += 1) await turns(1)
    await turns(QUIET)
    if (this.#error !== undefined) throw this.#error
  }

  async #read(events: AsyncIterable<StreamResponse>): Promise<void> {
    const { signal } = this.#stop
    try {
      for await (const event of events) this.told.push(toldIn(event, this.#isOwn))
    } catch (error) {
      if (!signal.aborted) this.#error = error
    }
  }
}
