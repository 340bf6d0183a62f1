import type { Clock } from '../../../runtime/ports/clock.ts'
import type { Direction, Tap } from '../../entry/connection.ts'
import type { TrafficFrame } from '../feed.ts'
import type { Redact } from './seen-step.ts'

/** The number of frames kept. */
const REMEMBERED_FRAMES = 1000

/**
 * The number of characters shown of a frame. Twice as many are kept, so that redaction sees secrets at the cut
 * completely.
 */
const LONGEST_TEXT = 4096
const KEPT_TEXT = 2 * LONGEST_TEXT

/** Records the frames of the agent's connections, while a page requests them. */
export class FrameLog {
  readonly frames = new Ring<TrafficFrame>(REMEMBERED_FRAMES)
  readonly #tap: Tap
  readonly #listen: NonNullable<Tap['onFrame']>
  #readers = 0

  constructor(tap: Tap, clock: Clock, stirred: () => void) {
    this.#tap = tap
    this.#listen = (connection: string, direction: Direction, text: string) => {
      this.frames.push({
        n: this.frames.last + 1,
        atMs: clock.now(),
        connection,
        direction,
        bytes: Buffer.byteLength(text),
        text: text.slice(0, KEPT_TEXT)
      })
      stirred()
    }
  }

  /** Starts recording. Returns the function that stops it, after as many calls as there were starts. */
  open(): () => void {
    this.#readers += 1
    this.#tap.onFrame = this.#listen
    return () => {
      this.#readers -= 1
      if (this.#readers === 0) this.#tap.onFrame = undefined
    }
  }
}

/** A frame for pages. */
export function shownFrame(frame: TrafficFrame, redact: Redact): TrafficFrame {
  const text = redact(frame.text)
  return { ...frame, text: typeof text === 'string' ? text.slice(0, LONGEST_TEXT) : '' }
}

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
