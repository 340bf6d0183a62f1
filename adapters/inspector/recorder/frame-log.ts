import type { Clock } from '../../../runtime/ports/clock.ts'
import type { Direction, Tap } from '../../entry/frame-tap.ts'
import type { Frame } from '../feed.ts'
import { Ring } from './ring.ts'
import type { Redact } from './seen-step.ts'

/** Frames that are remembered. */
export const REMEMBERED_FRAMES = 1000

/** Characters of a frame that are shown; somewhat more are kept, so that no secret is cut in two and shown by half. */
const LONGEST_TEXT = 4096
const KEPT_TEXT = 2 * LONGEST_TEXT

/** The frames of the agent's connections, while somebody wants to see them. */
export class FrameLog {
  readonly frames = new Ring<Frame>(REMEMBERED_FRAMES)
  readonly #tap: Tap
  readonly #listen: NonNullable<Tap['heard']>
  #readers = 0

  constructor(tap: Tap, clock: Clock, stirred: () => void) {
    this.#tap = tap
    this.#listen = (connection: string, direction: Direction, text: string) => {
      this.frames.push({ n: this.frames.last + 1, atMs: clock.now(), connection, direction, bytes: Buffer.byteLength(text), text: text.slice(0, KEPT_TEXT) })
      stirred()
    }
  }

  /** Listens until the answer is called as often as this. */
  open(): () => void {
    this.#readers += 1
    this.#tap.heard = this.#listen
    return () => {
      this.#readers -= 1
      if (this.#readers === 0) this.#tap.heard = undefined
    }
  }
}

/** A frame as pages see it. */
export function shownFrame(frame: Frame, redact: Redact): Frame {
  const text = redact(frame.text)
  return { ...frame, text: typeof text === 'string' ? text.slice(0, LONGEST_TEXT) : '' }
}
