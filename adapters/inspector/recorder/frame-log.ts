import type { Clock } from '../../../runtime/ports/clock.ts'
import type { Direction, Tap } from '../../entry/connection.ts'
import type { Frame } from '../feed.ts'
import { Ring } from './ring.ts'
import type { Redact } from './seen-step.ts'

/** The number of frames kept. */
export const REMEMBERED_FRAMES = 1000

/** The number of characters shown of a frame. Twice as many are kept, so that redaction sees secrets at the cut completely. */
const LONGEST_TEXT = 4096
const KEPT_TEXT = 2 * LONGEST_TEXT

/** Records the frames of the agent's connections, while a page requests them. */
export class FrameLog {
  readonly frames = new Ring<Frame>(REMEMBERED_FRAMES)
  readonly #tap: Tap
  readonly #listen: NonNullable<Tap['heard']>
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
    this.#tap.heard = this.#listen
    return () => {
      this.#readers -= 1
      if (this.#readers === 0) this.#tap.heard = undefined
    }
  }
}

/** A frame for pages. */
export function shownFrame(frame: Frame, redact: Redact): Frame {
  const text = redact(frame.text)
  return { ...frame, text: typeof text === 'string' ? text.slice(0, LONGEST_TEXT) : '' }
}
