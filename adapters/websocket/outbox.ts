import type { Socket } from 'node:net'
import type { Clock } from '../../runtime/ports/clock.ts'
import { afterTurns, turnEnd } from '../../runtime/primitives/event-loop.ts'
import { CLOSE_CODES } from './close-codes.ts'
import type { Intake } from './inbox.ts'
import { framesOf } from './outgoing-frames.ts'
import type { ServedSocket } from './served-socket.ts'

/** The buffer of one connection in bytes; above it, streams wait. */
export const HIGH_WATER_BYTES = 1024 * 1024

/** The time that a client may read nothing while the buffer is full. */
export const STUCK_MS = 30_000

/** The time that it then has to read the close frame. */
const CLOSE_MS = 5_000

/** When a frame leaves: at once, with all frames of this turn of the event loop, or, since it may wait, with those of the next. */
export type Leaving = 'now' | 'turn' | 'next turn'

/**
 * The outgoing frames of one connection. Frames of one turn of the event loop are written together. Frames that may wait are
 * written with those of the next turn, since with many streams a write is the most expensive part of an event. While more than
 * {@link HIGH_WATER_BYTES} wait, {@link drained} makes senders wait too, and the client is not read. If nothing drains for
 * {@link STUCK_MS}, the connection is closed with 4413.
 */
export class Outbox {
  readonly #socket: ServedSocket
  readonly #stream: Socket
  readonly #intake: Intake
  readonly #clock: Clock
  readonly #see: ((frame: string) => void) | undefined
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

  /** `see` is called with each frame. */
  constructor(socket: ServedSocket, stream: Socket, intake: Intake, clock: Clock, see?: (frame: string) => void) {
    this.#socket = socket
    this.#stream = stream
    this.#intake = intake
    this.#clock = clock
    this.#see = see
    socket.beforeClose = this.#flush
  }

  /** Sends one text frame, in the order of the calls. Does nothing once the connection is closing. */
  send(frame: string, leaving: Leaving = 'turn'): void {
    this.sendJoined('', frame, '', leaving)
  }

  /** Sends one text frame of three texts, which are not joined before. */
  sendJoined(head: string, body: string, end: string, leaving: Leaving): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return
    if (this.#pieces) return void this.#held.push(head + body + end)
    this.#texts.push(head, body, end)
    this.#length += head.length + body.length + end.length
    this.#see?.(head + body + end)
    if (leaving === 'now' || this.#length + this.#stream.writableLength > HIGH_WATER_BYTES) this.#flush()
    else this.#flushAfter(leaving)
  }

  /**
   * Sends one text message as fragments, one per piece, as fast as the client reads. Other work runs between them. Call it when
   * {@link drained} is `undefined`; frames sent meanwhile follow. `shown` is passed to `see` in its place.
   */
  sendPieces(pieces: Iterable<string>, shown: string): Promise<void> {
    this.#flush()
    return (this.#pieces = this.#sendAll(pieces, shown))
  }

  /** Resolves when there is room, or the connection is closed; `undefined` if there is room now. */
  get drained(): Promise<void> | undefined {
    return this.#drained ?? this.#pieces
  }

  async #sendAll(pieces: Iterable<string>, shown: string): Promise<void> {
    for (const piece of pieces) {
      await turnEnd()
      while (this.#drained) await this.#drained
      if (this.#socket.readyState !== this.#socket.OPEN) break
      this.#socket.send(piece, { fin: false })
      this.#waitIfFull()
    }
    this.#pieces = undefined
    if (this.#socket.readyState !== this.#socket.OPEN) return
    this.#socket.send('', { fin: true })
    this.#see?.(shown)
    for (const frame of this.#held.splice(0)) this.send(frame)
  }

  #flushAfter(leaving: Exclude<Leaving, 'now'>): void {
    if (this.#leaving === 'turn' || this.#leaving === leaving) return
    this.#leaving = leaving
    afterTurns(leaving === 'turn' ? 1 : 2, this.#flush)
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
    this.#intake.pause('unread answers')
    const stopWatch = this.#watch(this.#stream.writableLength)
    await new Promise<void>(resolve => {
      const done = () => {
        this.#stream.off('drain', done).off('close', done)
        resolve()
      }
      this.#stream.on('drain', done).on('close', done)
    })
    stopWatch()
    this.#drained = undefined
    this.#intake.resume('unread answers')
  }

  /** Closes the connection if the number of waiting bytes does not fall below `waiting` in time. Returns the function that stops it. */
  #watch(waiting: number): () => void {
    let timer: unknown
    const look = (before: number) => {
      timer = this.#clock.setTimeout(() => {
        if (this.#stream.writableLength < before) return look(this.#stream.writableLength)
        this.#socket.close(CLOSE_CODES.slowReader, 'Nothing was read for 30 seconds.')
        timer = this.#clock.setTimeout(() => this.#socket.terminate(), CLOSE_MS)
      }, STUCK_MS)
    }
    look(waiting)
    return () => this.#clock.clearTimeout(timer)
  }
}
