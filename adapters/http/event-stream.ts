import type { Clock } from '../../runtime/ports/clock.ts'
import { afterTurns, turnEnd } from '../../runtime/primitives/event-loop.ts'
import type { Sink } from './sinks.ts'

/** How often a stream says that it lives when it has nothing else to say. */
export const KEEP_ALIVE_MS = 15_000

/** How long a client may read nothing while events wait for it. */
export const STUCK_MS = 30_000

/** Characters that are written at once. Longer texts go in pieces, so that it shows whether their client reads. */
const AT_ONCE = 64 * 1024

/** Turns of the event loop within which events are written together: a write of its own costs as much as making the event. */
const TURNS = 8

/** One server-sent event; `id` is what a client that comes back names in `Last-Event-ID`. */
export function sentEvent(data: string, id: number | undefined): string {
  return id === undefined ? `data: ${data}\n\n` : `id: ${id}\ndata: ${data}\n\n`
}

/** The same of an event whose data comes in pieces. */
export function* sentPieces(data: Iterable<string>, id: number | undefined): Generator<string, void, undefined> {
  yield id === undefined ? 'data: ' : `id: ${id}\ndata: `
  yield* data
  yield '\n\n'
}

/**
 * The server-sent events that go to one client. Those of a few turns of the event loop leave together. While its sink has no
 * room {@link drained} makes senders wait; a client that reads nothing for {@link STUCK_MS} is cut off.
 */
export class EventStream {
  readonly #sink: Sink
  readonly #clock: Clock
  readonly #left: () => void
  #takesComments: boolean
  #state: 'open' | 'ending' | 'over' = 'open'
  #waiting = ''
  #isDue = false
  #keepAlive: unknown
  #stuck: unknown
  #drained: Promise<void> | undefined
  #wake = () => {}

  /** `left` is called when the client leaves, or is cut off, before the end. A text that is no stream of events gets no comments. */
  constructor(sink: Sink, clock: Clock, left: () => void, takesComments = true) {
    this.#takesComments = takesComments
    this.#sink = sink
    this.#clock = clock
    this.#left = left
    this.#scheduleKeepAlive()
    this.#flushAfter(1)
    sink.open({ drained: () => this.#goOn(), gone: () => this.#leave() })
  }

  /** False once it was ended, or its client has left. */
  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /** Sends the text of an event, in the order of the calls. Nothing happens once the stream is not open. */
  send(event: string): void {
    if (!this.isOpen) return
    this.#waiting += event
    if (this.#waiting.length > AT_ONCE) this.#flush()
    else if (!this.#isDue) this.#flushAfter(TURNS)
  }

  /** Sends one text in pieces, as the client reads them. The event loop goes on between them, and no comment comes into it. */
  async sendPieces(pieces: Iterable<string>): Promise<void> {
    const takesComments = this.#takesComments
    this.#takesComments = false
    for (const piece of pieces) {
      if (!this.isOpen) return
      this.send(piece)
      // A socket that takes all at once drains within the turn: without an end of that nobody else would have theirs.
      await this.drained
      await turnEnd()
    }
    this.#takesComments = takesComments
  }

  /** Resolves when there is room again, or the client has left; `undefined` when there is room now. */
  get drained(): Promise<void> | undefined {
    if (this.#drained || !this.isOpen || this.#sink.room > 0) return this.#drained
    this.#watch()
    return (this.#drained = new Promise(resolve => (this.#wake = resolve)))
  }

  /** Ends the stream after what was sent. Nothing happens if it is not open. */
  end(): void {
    if (!this.isOpen) return
    this.#state = 'ending'
    this.#clock.clearTimeout(this.#keepAlive)
    this.#flushAfter(1)
  }

  /** Cuts the client off unless it reads something soon. */
  #watch(): void {
    this.#stuck ??= this.#clock.setTimeout(() => {
      this.#sink.cutOff()
      this.#leave()
    }, STUCK_MS)
  }

  /** The client has read what it was sent. */
  #goOn(): void {
    if (this.#state === 'over') return
    this.#clock.clearTimeout(this.#stuck)
    this.#stuck = undefined
    if (this.#waiting !== '' && !this.#isDue) this.#flush()
    if (this.#sink.room > 0) this.#resume()
    else if (this.#drained) this.#watch()
  }

  #resume(): void {
    this.#drained = undefined
    this.#wake()
  }

  #flushAfter(turns: number): void {
    this.#isDue = true
    afterTurns(turns, () => this.#flush())
  }

  #flush(): void {
    this.#isDue = false
    if (this.#state === 'over') return
    if (this.#waiting === '') this.#sink.write('')
    while (this.#waiting !== '' && this.#sink.room > 0) {
      const text = this.#waiting
      // A character of two units is not cut in two.
      const last = text.charCodeAt(AT_ONCE - 1)
      const end = last >= 0xd800 && last < 0xdc00 ? AT_ONCE - 1 : AT_ONCE
      // First of all: a sink may ask for more at once.
      this.#waiting = text.slice(end)
      this.#sink.write(text.slice(0, end))
    }
    if (this.#waiting !== '') return this.#watch()
    if (this.#state === 'open') return
    this.#state = 'over'
    this.#sink.end()
  }

  #scheduleKeepAlive(): void {
    this.#keepAlive = this.#clock.setTimeout(() => {
      if (this.#takesComments && this.#sink.room > 0) this.send(':\n\n')
      this.#scheduleKeepAlive()
    }, KEEP_ALIVE_MS)
  }

  #leave(): void {
    const wasOpen = this.isOpen
    this.#state = 'over'
    this.#clock.clearTimeout(this.#keepAlive)
    this.#clock.clearTimeout(this.#stuck)
    this.#resume()
    if (wasOpen) this.#left()
  }
}
