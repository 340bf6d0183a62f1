import type { WebSocket } from 'ws'
import { A2AError } from '../../machines/protocol/errors.ts'
import type { Clock } from '../../runtime/ports/clock.ts'
import { appendItem, NONE, without } from '../../runtime/primitives/collections.ts'
import { jitter } from '../../runtime/primitives/event-loop.ts'

const WINDOW_MS = 1000

/** The number of consecutive seconds over the rate after which a client is disconnected. */
const WINDOWS_OVER = 3

/** Counts frames per second. */
export class FrameRate {
  readonly #limit: number
  #windowStartMs = -Infinity
  #count = 0
  #windowsOver = 0

  /** `limit` is the number of frames per second. */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** Counts a frame. Answers whether the rate is kept, exceeded, or exceeded for too long. */
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
  return new A2AError('RateLimited', `This connection sends more than ${limit} frames a second. Send less.`, {
    retryAfterMs: 1000
  })
}

/**
 * Parses frame headers (RFC 6455 §5.2), to know whether a frame is incomplete and how many bytes of a message have
 * arrived.
 */
export class FrameWatch {
  #header: number[] = []
  #payloadLeft = 0
  #isData = false
  #isLast = false
  /** Whether a message has begun whose last frame has not. */
  #isFragmented = false
  #messageBytes = 0

  /** The number of received bytes of an incomplete message. */
  get messageBytes(): number {
    return this.#messageBytes
  }

  /** Whether the bytes so far end with a whole message. */
  get isBetweenMessages(): boolean {
    return !this.#isWithin && !this.#isFragmented
  }

  /** Parses the next bytes. Answers whether they end in the middle of a frame. */
  follow(bytes: Uint8Array): boolean {
    for (let at = 0; at < bytes.length;) {
      const payload = Math.min(this.#payloadLeft, bytes.length - at)
      this.#payloadLeft -= payload
      at += payload
      if (this.#isData) this.#messageBytes += payload
      if (payload === 0) this.#addHeaderByte(Number(bytes[at++]))
      if (this.#isData && this.#isLast && !this.#isWithin) this.#messageBytes = 0
    }
    return this.#isWithin
  }

  get #isWithin(): boolean {
    return this.#payloadLeft > 0 || this.#header.length > 0
  }

  #addHeaderByte(byte: number): void {
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
    if (this.#isData) this.#isFragmented = !this.#isLast
  }
}

/** The number of consecutive requests over the quota before a client is paused. */
const REFUSALS = 16

/** The length of the pause, in milliseconds. */
const pauseMs = jitter(1000)

/**
 * Counts the requests of one connection that its quota refuses. Too many pause the reading, so that others are served.
 */
export class Refusals {
  readonly #readPause: ReadPause
  readonly #clock: Clock
  #count = 0
  #pause: unknown

  constructor(readPause: ReadPause, clock: Clock) {
    this.#readPause = readPause
    this.#clock = clock
  }

  /** Counts a request over the quota. */
  note(): void {
    this.#count += 1
    if (this.#count < REFUSALS || this.#readPause.isPausedFor('quota')) return
    this.#count = 0
    this.#readPause.pause('quota')
    this.#pause = this.#clock.setTimeout(() => this.#readPause.resume('quota'), pauseMs())
  }

  /** Resets the count after a request within the quota. */
  forget(): void {
    this.#count = 0
  }

  /** Stops the timer of a closed connection. */
  end(): void {
    this.#clock.clearTimeout(this.#pause)
  }
}

/** Pauses the reading of one connection until none of the reasons is left. */
export class ReadPause {
  readonly #socket: Pick<WebSocket, 'pause' | 'resume'>
  #reasons: readonly PauseReason[] = NONE

  constructor(socket: Pick<WebSocket, 'pause' | 'resume'>) {
    this.#socket = socket
  }

  isPausedFor(reason: PauseReason): boolean {
    return this.#reasons.includes(reason)
  }

  pause(reason: PauseReason): void {
    if (!this.isPausedFor(reason)) this.#reasons = appendItem(this.#reasons, reason)
    this.#socket.pause()
  }

  /** Removes a reason. May be called without a pause. */
  resume(reason: PauseReason): void {
    if (!this.isPausedFor(reason)) return
    this.#reasons = without(this.#reasons, reason)
    if (this.#reasons.length === 0) this.#socket.resume()
  }
}

/**
 * Why a connection is not read: its client reads no answers or is over a quota, its messages wait, or there is no
 * memory for one.
 */
type PauseReason = 'unread answers' | 'quota' | 'turn' | 'no room'
