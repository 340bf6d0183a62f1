import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import { A2AError } from '../../machines/protocol/errors.ts'
import { type FairQueue, readingCost } from '../../runtime/access/call-scheduler.ts'
import type { Clock } from '../../runtime/ports/clock.ts'
import { appendItem, NONE, without } from '../../runtime/primitives/collections.ts'
import { Gathering, jitter, onReceived } from '../../runtime/primitives/event-loop.ts'

/** The first byte of a whole message of text: FIN, no extension, opcode 1. */
const WHOLE_TEXT = 0x81

const MASKED = 0x80

/** Stands for bytes that are not UTF-8. A text may have it too. */
const REPLACEMENT = '\uFFFD'

/** The reader of one connection. */
interface FrameReader {
  /** Knows whether the last frame, and its message, was complete. */
  readonly watch: Pick<FrameWatch, 'isBetweenMessages'>
  /** The maximum size of a message, in bytes. */
  readonly most: number
  /** Reads a message, of so many bytes. */
  readonly read: (text: string, bytes: number) => void
  /** Called before `ws` gets the rest of a chunk, which may end the connection. */
  readonly before: () => void
  /** Called after the messages of a chunk, with the bytes that `ws` has got, if any. */
  readonly arrived: (rest: Buffer | undefined) => void
  /** Called with an error of the reader. */
  readonly fail: (error: unknown) => void
}

/**
 * Reads messages from the socket below `ws` if each is one frame in one chunk, as nearly all are. Everything else goes
 * to `ws`: other frames, malformed ones, and their messages and errors. A frame takes `ws` four Buffers and three
 * events: an answer of GetTask then allocates 0.9 kB more (Node 24; `npm run bench -- --only get`).
 */
export function readWholeFrames(stream: Socket, reader: FrameReader): void {
  const [forward] = stream.listeners('data')
  const read = (chunk: Buffer) => {
    const at = reader.watch.isBetweenMessages ? readFrames(chunk, reader) : 0
    const rest = at < chunk.length ? chunk.subarray(at) : undefined
    if (rest) {
      reader.before()
      forward?.call(stream, rest)
    }
    reader.arrived(rest)
  }
  if (forward) stream.off('data', forward as (chunk: Buffer) => void)
  // As with the listeners of `once`, the property makes `ws` remove this listener when it removes its own.
  onReceived(stream, 'data', read, reader.fail, { listener: forward })
}

/** Reads the messages at the start of a chunk. Gives the offset of the first byte that is not read. */
function readFrames(chunk: Buffer, { most, read }: FrameReader): number {
  let at = 0
  while (chunk[at] === WHOLE_TEXT) {
    const short = chunk[at + 1] ?? 0
    const start = at + (short === (MASKED | 126) ? 8 : 6)
    const length = short === (MASKED | 126) ? lengthAt(chunk, at + 2) : short - MASKED
    const end = start + length
    if (short < MASKED || short === (MASKED | 127) || length > most || end > chunk.length) return at
    unmask(chunk, start, end)
    const text = chunk.toString('utf8', start, end)
    if (text.includes(REPLACEMENT)) return at
    read(text, length)
    at = end
  }
  return at
}

/** The length in two bytes; too large if they have not arrived. */
function lengthAt(chunk: Buffer, at: number): number {
  return at + 2 > chunk.length ? Infinity : chunk.readUInt16BE(at)
}

/** Unmasks a payload in place. The mask before it becomes zero, so that it may be unmasked again. */
function unmask(chunk: Buffer, start: number, end: number): void {
  const mask = chunk.readUInt32BE(start - 4)
  chunk.writeUInt32BE(0, start - 4)
  for (let i = start; i < end; i += 1) chunk[i] = (chunk[i] as number) ^ (mask >>> (24 - 8 * ((i - start) & 3)))
}

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
type PauseReason = 'unread answers' | 'quota' | 'share' | 'no room'

/** The memory overhead of a waiting message, in bytes. */
const MESSAGE_BYTES = 128

/** One message of a client, and whether it arrived within the rate. */
export interface ReceivedFrame {
  readonly data: Buffer | string
  /** Its size in bytes. */
  readonly bytes: number
  readonly isBinary: boolean
  readonly rate: ReturnType<FrameRate['count']>
}

/**
 * The parts of an inbox. `user`: the caller for the queue; `connection`: the identity of the connection; `read`:
 * processes one message.
 */
interface InboxOptions {
  readonly reading: FairQueue
  readonly user: object | string
  readonly connection: object
  readonly readPause: ReadPause
  readonly read: (frame: ReceivedFrame) => void
}

/**
 * The unparsed messages of one connection, in order. The {@link FairQueue} schedules parsing fairly among all callers,
 * with a limit per round of the event loop. While messages wait, the connection is not read.
 */
export class Inbox {
  /** The inboxes with messages of this round of the event loop. */
  static readonly #gathering = new Gathering<Inbox>(inbox => inbox.readWaiting())
  readonly #options: InboxOptions
  #waiting: ReceivedFrame[] = []
  #bytes = 0
  /** Whether the first waiting message is scheduled. */
  #isScheduled = false

  constructor(options: InboxOptions) {
    this.#options = options
  }

  /** The memory of waiting messages, in bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /**
   * Reads a message: now if none waits and this round has budget left, otherwise later. With `mayWait`, other clients
   * may go first.
   */
  add(frame: ReceivedFrame, mayWait: boolean): void {
    // A message that is not the first one waits. The first one is read as soon as the queue allows if it may not wait,
    // or if this connection also sent the newest message of all. Otherwise it waits for the end of the round, when the
    // messages of all connections are read together.
    const isFirst = this.#waiting.length === 0
    const isAlone = !mayWait || Inbox.#gathering.isSame(this.#options.connection)
    const wait = isFirst && isAlone ? this.#waitOf(frame) : undefined
    if (isFirst && isAlone && !wait) return this.#options.read(frame)
    this.#waiting.push(frame)
    this.#bytes += frame.bytes + MESSAGE_BYTES
    if (wait) void this.#readAfter(wait)
    else if (isFirst) Inbox.#gathering.add(this)
  }

  /** Reads the waiting messages, up to one that has to wait. */
  readWaiting(): void {
    if (this.#isScheduled) return
    for (let [next] = this.#waiting; next; [next] = this.#waiting) {
      const wait = this.#waitOf(next)
      if (wait) return void this.#readAfter(wait)
      this.#readFirst()
    }
    this.#options.readPause.resume('share')
  }

  /** Drops waiting messages of a closed connection. */
  clear(): void {
    this.#waiting = []
    this.#bytes = 0
  }

  async #readAfter(wait: Promise<void>): Promise<void> {
    this.#options.readPause.pause('share')
    this.#isScheduled = true
    await wait
    this.#isScheduled = false
    this.#readFirst()
    this.readWaiting()
  }

  #readFirst(): void {
    const frame = this.#waiting.shift()
    if (!frame) return
    this.#bytes -= frame.bytes + MESSAGE_BYTES
    this.#options.read(frame)
  }

  #waitOf({ bytes }: ReceivedFrame): Promise<void> | undefined {
    const { reading, user } = this.#options
    return reading.next(user, readingCost(bytes))
  }
}
