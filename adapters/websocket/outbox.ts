import type { Socket } from 'node:net'
import { WebSocket } from 'ws'
import type { Clock } from '../../runtime/ports/clock.ts'
import { afterRounds, roundEnd } from '../../runtime/primitives/event-loop.ts'
import { watchReader } from '../entry/connection.ts'
import { CLOSE_CODES } from './close-codes.ts'
import type { ReadPause } from './incoming-frames.ts'

/** The buffer of one connection in bytes; above it, streams wait. */
export const HIGH_WATER_BYTES = 1024 * 1024

/** The time that it then has to read the close frame. */
const CLOSE_MS = 5_000

/** When a frame leaves: with those of this round of the event loop, or, since it may wait, with those of the next. */
type Leaving = 'round' | 'next round'

/**
 * The outgoing frames of one connection. Frames of one round of the event loop are written together. Frames that may
 * wait are written with those of the next round, since with many streams a write is the most expensive part of an
 * event. While more than {@link HIGH_WATER_BYTES} wait, {@link drained} makes senders wait too, and the client is not
 * read. If nothing drains for {@link READER_STALL_MS}, the connection is closed with 4413.
 */
export class Outbox {
  readonly #socket: ServedSocket
  readonly #stream: Socket
  readonly #readPause: ReadPause
  readonly #clock: Clock
  readonly #onFrame: ((frame: string) => void) | undefined
  /** The texts of frames that are not written yet, three for each. */
  #texts: string[] = []
  #length = 0
  /** When they leave. */
  #leaving: Leaving | undefined
  #drained: Promise<void> | undefined
  /** Settles when the message in pieces is sent. */
  #pieces: Promise<void> | undefined
  /** Frames to send after it. */
  #held: string[] = []

  /** `onFrame` is called with each frame. */
  constructor(
    socket: ServedSocket,
    stream: Socket,
    readPause: ReadPause,
    clock: Clock,
    onFrame?: (frame: string) => void
  ) {
    this.#socket = socket
    this.#stream = stream
    this.#readPause = readPause
    this.#clock = clock
    this.#onFrame = onFrame
    socket.beforeClose = this.#flush
  }

  /** Sends one text frame, in the order of the calls. Does nothing once the connection is closing. */
  send(frame: string, leaving: Leaving = 'round'): void {
    this.sendJoined('', frame, '', leaving)
  }

  /** Sends one text frame of three texts, which are not joined before. */
  sendJoined(head: string, body: string, end: string, leaving: Leaving = 'round'): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return
    if (this.#pieces) return void this.#held.push(head + body + end)
    this.#texts.push(head, body, end)
    this.#length += head.length + body.length + end.length
    this.#onFrame?.(head + body + end)
    if (this.#length + this.#stream.writableLength > HIGH_WATER_BYTES) this.#flush()
    else this.#flushAfter(leaving)
  }

  /**
   * Sends one text message as fragments, one per piece, as fast as the client reads. Other work runs between them. Call
   * it when {@link drained} is `undefined`; frames sent meanwhile follow. `shown` is passed to `onFrame` in its place.
   */
  sendPieces(pieces: Iterable<string>, shown: string): Promise<void> {
    this.#flush()
    return (this.#pieces = this.#sendAll(pieces, shown))
  }

  /** Resolves when there is space, or the connection is closed; `undefined` if there is space now. */
  get drained(): Promise<void> | undefined {
    return this.#drained ?? this.#pieces
  }

  async #sendAll(pieces: Iterable<string>, shown: string): Promise<void> {
    for (const piece of pieces) {
      await roundEnd()
      while (this.#drained) await this.#drained
      if (this.#socket.readyState !== this.#socket.OPEN) break
      this.#socket.send(piece, { fin: false })
      this.#waitIfFull()
    }
    this.#pieces = undefined
    if (this.#socket.readyState !== this.#socket.OPEN) return
    this.#socket.send('', { fin: true })
    this.#onFrame?.(shown)
    for (const frame of this.#held.splice(0)) this.send(frame)
  }

  #flushAfter(leaving: Leaving): void {
    if (this.#leaving === 'round' || this.#leaving === leaving) return
    this.#leaving = leaving
    afterRounds(leaving === 'round' ? 1 : 2, this.#flush)
  }

  /** Writes the frames that are not written yet, before a close frame too. */
  readonly #flush = (): void => {
    const texts = this.#texts
    if (texts.length === 0) return
    this.#texts = []
    this.#length = 0
    this.#leaving = undefined
    if (this.#socket.readyState === this.#socket.OPEN) this.#stream.write(framesOf(texts))
    this.#waitIfFull()
  }

  #waitIfFull(): void {
    if (this.#stream.writableLength > HIGH_WATER_BYTES) this.#drained ??= this.#wait()
  }

  async #wait(): Promise<void> {
    this.#readPause.pause('unread answers')
    let closing: unknown
    const endWatch = watchReader(
      this.#clock,
      () => this.#stream.writableLength,
      () => {
        this.#socket.close(CLOSE_CODES.slowReader, 'Nothing was read for 30 seconds.')
        closing = this.#clock.setTimeout(() => this.#socket.terminate(), CLOSE_MS)
      }
    )
    await new Promise<void>(resolve => {
      const done = () => {
        this.#stream.off('drain', done).off('close', done)
        resolve()
      }
      this.#stream.on('drain', done).on('close', done)
    })
    endWatch()
    this.#clock.clearTimeout(closing)
    this.#drained = undefined
    this.#readPause.resume('unread answers')
  }
}

/** The bytes of a header before a text of less than 64 KiB, and before any other. */
const SHORT_HEADER = 4
const LONG_HEADER = 10

/**
 * Memory that is filled from its start to its end, and then replaced: a Buffer of its own for each flush takes twice as
 * long.
 */
const BLOCK_BYTES = 64 * 1024

let block = Buffer.allocUnsafeSlow(BLOCK_BYTES)
let used = 0

/**
 * The bytes of unmasked text frames (RFC 6455 §5.2), one for each three texts, which follow one another in it. `ws`
 * makes two Buffers, two writes and an object of options for each frame: an answer of GetTask then allocates 1.2 kB
 * more (Node 24; `npm run bench -- --only get`).
 */
export function framesOf(texts: readonly string[]): Buffer {
  growBlock(texts)
  const start = used
  for (let i = 0; i < texts.length; i += 3)
    writeFrame(texts[i] as string, texts[i + 1] as string, texts[i + 2] as string)
  return block.subarray(start, used)
}

/** Makes the rest of the block large enough. A character takes at most three bytes. */
function growBlock(texts: readonly string[]): void {
  let most = 0
  for (const text of texts) most += LONG_HEADER + 3 * text.length
  if (most <= block.length - used) return
  const bytes = texts.reduce((sum, text) => sum + LONG_HEADER + Buffer.byteLength(text), 0)
  if (bytes <= block.length - used) return
  block = Buffer.allocUnsafeSlow(Math.max(bytes, BLOCK_BYTES))
  used = 0
}

function writeFrame(head: string, body: string, end: string): void {
  const at = used
  const length = head.length + body.length + end.length
  const expected = headerLength(length)
  used += expected
  used += block.write(head, used)
  used += block.write(body, used)
  used += block.write(end, used)
  const bytes = used - at - expected
  const header = headerLength(bytes)
  // Other characters than those of ASCII may make the header longer than the number of characters lets expect.
  if (header !== expected) block.copyWithin(at + header, at + expected, used)
  used += header - expected
  block[at] = 0x81
  block[at + 1] = header === 2 ? bytes : header === SHORT_HEADER ? 126 : 127
  if (header === SHORT_HEADER) block.writeUInt16BE(bytes, at + 2)
  if (header === LONG_HEADER) block.writeBigUInt64BE(BigInt(bytes), at + 2)
}

function headerLength(bytes: number): number {
  return bytes < 126 ? 2 : bytes < 0x1_00_00 ? SHORT_HEADER : LONG_HEADER
}

/** The WebSocket of a client, whose frames its `Outbox` writes to the socket below it. */
export class ServedSocket extends WebSocket {
  /** Called before a close frame, which ends what the client reads. */
  beforeClose: (() => void) | undefined

  override close(code?: number, data?: string | Buffer): void {
    this.beforeClose?.()
    super.close(code, data)
  }
}
