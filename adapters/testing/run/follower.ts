import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import { toldIn, type ComparedEvent, type Update } from '../plan/told.ts'

/** How many rests an event may take to come, over a socket too. */
const PATIENCE = 20_000

/** Rests in which an event that should not come would come. */
const QUIET = 8

/** Follows the events of a task through the ends of its process: each comes once, in order. */
export class Follower {
  /** What was told so far. */
  readonly told: ComparedEvent[] = []
  readonly #isOwn: (artifactId: string) => boolean
  readonly #rest: () => Promise<void>
  #stop = new AbortController()
  #reading: Promise<void> = Promise.resolve()

  /** `isOwn`: whether an artifact's id is the author's. `rest` lets everything run that can, once. */
  constructor(isOwn: (artifactId: string) => boolean, rest: () => Promise<void>) {
    this.#isOwn = isOwn
    this.#rest = rest
  }

  /** Goes on, by a stream of what was told after a generation. */
  follow(open: (after: number, signal: AbortSignal) => AsyncIterable<StreamResponse>): void {
    this.#stop = new AbortController()
    this.#reading = this.#read(open(this.told.length, this.#stop.signal))
  }

  /** Stops listening. */
  async pause(): Promise<void> {
    this.#stop.abort()
    await this.#reading
  }

  /** Waits until so many events were told, and for a moment whether there are more. */
  async settle(count: number): Promise<void> {
    for (let times = 0; this.told.length < count && times < PATIENCE; times += 1) await this.#rest()
    for (let times = 0; times < QUIET; times += 1) await this.#rest()
  }

  async #read(events: AsyncIterable<StreamResponse>): Promise<void> {
    try {
      for await (const event of events) this.told.push(toldIn(event as Update, this.#isOwn))
    } catch {
      // A stream that ends has told what it has told: what is missing is seen by that.
    }
  }
}
