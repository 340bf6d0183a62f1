import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import { toldIn, type ComparedEvent, type Update } from '../plan/told.ts'

/** The number of rests to wait for an expected event, also over a socket. */
const PATIENCE = 20_000

/** The number of rests to wait for an unexpected event. */
const QUIET = 8

/** Follows the events of a task across restarts of its process: each arrives once, in order. */
export class Follower {
  /** The events so far. */
  readonly told: ComparedEvent[] = []
  readonly #isOwn: (artifactId: string) => boolean
  readonly #rest: () => Promise<void>
  #stop = new AbortController()
  #reading: Promise<void> = Promise.resolve()

  /** `isOwn`: whether the author chose an artifact's id. `rest` lets pending work run once. */
  constructor(isOwn: (artifactId: string) => boolean, rest: () => Promise<void>) {
    this.#isOwn = isOwn
    this.#rest = rest
  }

  /** Continues with a stream of events after a generation. */
  follow(open: (after: number, signal: AbortSignal) => AsyncIterable<StreamResponse>): void {
    this.#stop = new AbortController()
    this.#reading = this.#read(open(this.told.length, this.#stop.signal))
  }

  /** Stops the stream. */
  async pause(): Promise<void> {
    this.#stop.abort()
    await this.#reading
  }

  /** Waits for so many events, and then briefly for unexpected ones. */
  async settle(count: number): Promise<void> {
    for (let times = 0; this.told.length < count && times < PATIENCE; times += 1) await this.#rest()
    for (let times = 0; times < QUIET; times += 1) await this.#rest()
  }

  async #read(events: AsyncIterable<StreamResponse>): Promise<void> {
    try {
      for await (const event of events) this.told.push(toldIn(event as Update, this.#isOwn))
    } catch {
      // Ignored: missing events fail the comparison.
    }
  }
}
