import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import type { Clock } from '../../runtime/ports/clock.ts'
import { afterTurns, turnEnd } from '../../runtime/primitives/event-loop.ts'
import { CLOSE_CODES } from './close-codes.ts'
import type { Intake } from './intake.ts'

/** Bytes that may wait on one connection before its streams stop and wait. */
export const HIGH_WATER_BYTES = 1024 * 1024

/** How long a client may read nothing while that much waits for it. */
export const STUCK_MS = 30_000

/** How long it then has to take the close frame. */
const CLOSE_MS = 5_000

/**
 * What goes out on one connection. Everything that one run of the event loop sends leaves with one flush, and what may
 * wait with that of the next: where many streams tell, a flush is the dearest part of an event. While more
 * than {@link HIGH_WATER_BYTES} wait, {@link drained} makes senders wait too, and nothing is read from the client; if
 * nothing drains for {@link STUCK_MS} the connection is closed with 4413.
 */
export class Outbox {
  readonly #socket: WebSocket
  readonly #stream: Socket
  readonly #intake: Intake
  readonly #clock: Clock
  readonly #see: ((frame: string) => void) | undefined
  /** What it waits for until it is flushed. */
  #corked: 'turn' | 'next turn' | undefined
  #drained: Promise<void> | undefined
  /** Settles when the text is out that goes in pieces. */
  #pieces: Promise<void> | undefined
  /** What was sent meanwhile. */
  #held: string[] = []

  /** `see` hears of each frame. */
  constructor(socket: WebSocket, stream: Socket, intake: Intake, clock: Clock, see?: (frame: string) => void) {
    this.#socket = socket
    this.#stream = stream
    this.#intake = intake
    this.#clock = clock
    this.#see = see
  }

  /** Sends one text frame, in the order of the calls. Nothing happens once the connection is closing. */
  send(frame: string, mayWait = false): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return
    if (this.#pieces) return void this.#held.push(frame)
    this.#cork(mayWait ? 'next turn' : 'turn')
    this.#socket.send(frame)
    this.#see?.(frame)
    this.#waitIfFull()
  }

  /**
   * Sends one text message as fragments, one for each piece, as the client reads them. The event loop goes on between them.
   * Call it when {@link drained} is `undefined`; what is sent meanwhile follows. `shown` is what is seen of it.
   */
  sendPieces(pieces: Iterable<string>, shown: string): Promise<void> {
    return (this.#pieces = this.#sendAll(pieces, shown))
  }

  /** Resolves when there is room again, or the connection is gone; `undefined` when there is room now. */
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

  /** Cuts the client off when less than `waiting` bytes never come about. The answer stops the watch. */
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
