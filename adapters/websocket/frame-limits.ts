import { A2AError } from '../../machines/protocol/errors.ts'
import type { Clock } from '../../runtime/ports/clock.ts'
import { jitter } from '../../runtime/primitives/jitter.ts'
import type { Intake } from './intake.ts'

const WINDOW_MS = 1000

/** Seconds in a row over the rate after which a client is cut off. */
const WINDOWS_OVER = 3

/** Counts what comes in, second by second. */
export class FrameRate {
  readonly #limit: number
  #windowStartMs = -Infinity
  #count = 0
  #windowsOver = 0

  /** `limit` is how many may come in a second. */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** Counts one more, and tells whether it is within the rate, over it, or over it for too long. */
  count(nowMs: number): 'within' | 'over' | 'tooLong' {
    if (nowMs - this.#windowStartMs >= WINDOW_MS) {
      const isNext = nowMs - this.#windowStartMs < 2 * WINDOW_MS
      this.#windowsOver = isNext && this.#count > this.#limit ? this.#windowsOver + 1 : 0
      this.#windowStartMs = nowMs
      this.#count = 0
    }
    this.#count += 1
    if (this.#count <= this.#limit) return 'within'
    return this.#windowsOver + 1 >= WINDOWS_OVER ? 'tooLong' : 'over'
  }
}

/** The error for a frame over the rate of its connection. */
export function tooFast(limit: number): A2AError {
  return new A2AError('RateLimited', `This connection sends more than ${limit} frames a second. Send less.`, { retryAfterMs: 1000 })
}

/** Follows the bytes of a client frame by frame (RFC 6455 §5.2), to know whether a frame has begun that has not ended, and how much of a message has come. */
export class FrameWatch {
  #header: number[] = []
  #payloadLeft = 0
  #isData = false
  #isLast = false
  #messageBytes = 0

  /** How many bytes have come of a message that is not complete. */
  get messageBytes(): number {
    return this.#messageBytes
  }

  /** Takes the next bytes. Answers whether they end in the middle of a frame. */
  follow(bytes: Uint8Array): boolean {
    for (let at = 0; at < bytes.length; ) {
      const payload = Math.min(this.#payloadLeft, bytes.length - at)
      this.#payloadLeft -= payload
      at += payload
      if (this.#isData) this.#messageBytes += payload
      if (payload === 0) this.#takeHeader(Number(bytes[at++]))
      if (this.#isData && this.#isLast && !this.#isWithin) this.#messageBytes = 0
    }
    return this.#isWithin
  }

  get #isWithin(): boolean {
    return this.#payloadLeft > 0 || this.#header.length > 0
  }

  #takeHeader(byte: number): void {
    this.#header.push(byte)
    const [first = 0, second = -1] = this.#header
    if (second < 0) return
    const short = second & 0x7f
    const extended = short === 127 ? 8 : short === 126 ? 2 : 0
    const masked = second & 0x80 ? 4 : 0
    if (this.#header.length < 2 + extended + masked) return
    const digits = this.#header.slice(2, 2 + extended)
    this.#payloadLeft = extended === 0 ? short : digits.reduce((length, digit) => length * 256 + digit, 0)
    this.#header = []
    this.#isData = (first & 0x0f) < 8
    this.#isLast = (first & 0x80) > 0
  }
}

/** Requests of a client that its quota refuses one after the other, before it is read more slowly. */
const REFUSALS = 16

/** How long nothing is read from such a client, in milliseconds. */
const pauseMs = jitter(1000)

/** Counts the refusals of one connection. A client that goes on over its quota gets its answers, and then is not read for a while: others have their turn. */
export class Refusals {
  readonly #intake: Intake
  readonly #clock: Clock
  #count = 0
  #pause: unknown

  constructor(intake: Intake, clock: Clock) {
    this.#intake = intake
    this.#clock = clock
  }

  /** Counts a request that was over the quota. */
  note(): void {
    this.#count += 1
    if (this.#count < REFUSALS || this.#intake.isPausedFor('quota')) return
    this.#count = 0
    this.#intake.pause('quota')
    this.#pause = this.#clock.setTimeout(() => this.#intake.resume('quota'), pauseMs())
  }

  /** Starts to count anew: a request was within the quota. */
  forget(): void {
    this.#count = 0
  }

  /** The connection is closed. */
  end(): void {
    this.#clock.clearTimeout(this.#pause)
  }
}
