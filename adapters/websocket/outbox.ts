import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import type { Clock } from '../../runtime/ports/clock.ts'
import { afterTurns, turnEnd } from '../../runtime/primitives/event-loop.ts'
import { CLOSE_CODES } from './close-codes.ts'
import type { Intake } from './inbox.ts'

/** The buffer of one connection in bytes; above it, streams wait. */
export const HIGH_WATER_BYTES = 1024 * 1024

/** The time that a client may read nothing while the buffer is full. */
export const STUCK_MS = 30_000

/** The time that it then has to read the close frame. */
const CLOSE_MS = 5_000

/**
 * The outgoing frames of one connection. Frames of one turn of the event loop are flushed together. Frames that may wait are
 * flushed with those of the next turn, since with many streams a flush is the most expensive part of an event. While more than
 * {@link HIGH_WATER_BYTES} wait, {@link drained} makes senders wait too, and the client is not read. If nothing drains for
 * {@link STUCK_MS}, the connection is closed with 4413.
 */
export class Outbox {
  readonly #socket: WebSocket
  readonly #stream: Socket
  readonly #intake: Intake
  readonly #clock: Clock
  readonly #see: ((frame: string) => void) | undefined
  /** When corked frames are flushed. */
  #corked: 'turn' | 'next turn' | undefined
  #drained: Promise<void> | undefined
  /** Settles when the message in pieces is sent. */
  #pieces: Promise<void> | undefined
  /** Frames to send after it. */
  #held: string[] = []

  /** `see` is called with each frame. */
  constructor(socket: WebSocket, stream: Socket, intake: Intake, clock: Clock, see?: (frame: string) => void) {
    this.#socket = socket
    this.#stream = stream
    this.#intake = intake
    this.#clock = clock
    this.#see = see
  }

  /** Sends one text frame, in the order of the calls. Does nothing once the connection is closing. */
  send(frame: string, mayWait = false): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return
    if (this.#pieces) return void this.#held.push(frame)
    this.#cork(mayWait ? 'next turn' : 'turn')
    this.#socket.send(frame)
    this.#see?.(frame)
    this.#waitIfFull()
  }

  /**
   * Sends one text message as fragments, one per piece, as fast as the client reads. Other work runs between them. Call it when
   * {@link drained} is `undefined`; frames sent meanwhile follow. `shown` is passed to `see` in its place.
   */
  sendPieces(pieces: Iterable<string>, shown: string): Promise<void> {
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

  #cork(until: 'turn' | 'next turn'): void {
    if (this.#corked === 'turn' || this.#corked === until) return
    if (!this.#corked) this.#stream.cork()
    this.#corked = until
    afterTurns(until === 'turn' ? 1 : 2, () => this.#flush())
  }

  #flush(): void {
    if (!this.#corked) return
    this.#corked = undefined
    this.#stream.uncork()
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
