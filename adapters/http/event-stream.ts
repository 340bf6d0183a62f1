import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Clock } from '../../runtime/ports/clock.ts'
import { afterRounds, onAbort, roundEnd } from '../../runtime/primitives/event-loop.ts'
import { type DirectResponse, disconnectSignal, watchReader } from '../entry/connection.ts'

/** The interval of keep-alive comments on an idle stream. */
export const KEEP_ALIVE_MS = 15_000

/** The maximum number of characters per write. Longer texts are split, to notice whether the client reads. */
const AT_ONCE = 64 * 1024

/** Rounds of the event loop whose events are written together: a write costs as much as making an event. */
const ROUNDS = 8

/** One server-sent event. A client that reconnects sends its `id` as `Last-Event-ID`. */
export function sentEvent(data: string, id: number | undefined): string {
  return id === undefined ? `data: ${data}\n\n` : `id: ${id}\ndata: ${data}\n\n`
}

/** The event of an error, with a name where the version of the stream has one. */
export function sentError(data: string, name: string | undefined): string {
  return name === undefined ? `data: ${data}\n\n` : `event: ${name}\ndata: ${data}\n\n`
}

/** The text of an event in pieces, for data in pieces. */
export function* sentPieces(data: Iterable<string>, id: number | undefined): Generator<string, void, undefined> {
  yield id === undefined ? 'data: ' : `id: ${id}\ndata: `
  yield* data
  yield '\n\n'
}

/**
 * The server-sent events to one client. Events of a few rounds of the event loop are written together. While its sink
 * is full, {@link drained} makes senders wait. The connection of a client that reads nothing for
 * {@link READER_STALL_MS} is closed.
 */
export class EventStream {
  readonly #sink: StreamSink
  readonly #clock: Clock
  readonly #left: () => void
  #allowsComments: boolean
  #state: 'open' | 'ending' | 'over' = 'open'
  #waiting = ''
  #isDue = false
  #keepAlive: unknown
  #endWatch: (() => void) | undefined
  #drained: Promise<void> | undefined
  #wake = () => {}

  /**
   * `left` is called when the connection closes before the end. `allowsComments` is false for a body that is not SSE.
   */
  constructor(sink: StreamSink, clock: Clock, left: () => void, allowsComments = true) {
    this.#allowsComments = allowsComments
    this.#sink = sink
    this.#clock = clock
    this.#left = left
    this.#scheduleKeepAlive()
    this.#flushAfter(1)
    sink.open({ drained: () => this.#goOn(), gone: () => this.#leave() })
  }

  /** False after the end of the stream, and after its client has disconnected. */
  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /** Sends the text of an event, in the order of the calls. Does nothing once the stream is closed. */
  send(event: string): void {
    if (!this.isOpen) return
    this.#waiting += event
    if (this.#waiting.length > AT_ONCE) this.#flush()
    else if (!this.#isDue) this.#flushAfter(ROUNDS)
  }

  /**
   * Sends one text in pieces, as fast as the client reads. Other work runs between the pieces, and no comment is
   * inserted.
   */
  async sendPieces(pieces: Iterable<string>): Promise<void> {
    const allowsComments = this.#allowsComments
    this.#allowsComments = false
    for (const piece of pieces) {
      if (!this.isOpen) return
      this.send(piece)
      // A socket that accepts everything drains within the round. Waiting for its end lets other work run.
      await this.drained
      await roundEnd()
    }
    this.#allowsComments = allowsComments
  }

  /** Resolves when the sink has space, or the client has disconnected; `undefined` if it has space now. */
  get drained(): Promise<void> | undefined {
    if (this.#drained || !this.isOpen || this.#sink.freeBytes > 0) return this.#drained
    this.#watch()
    return (this.#drained = new Promise(resolve => (this.#wake = resolve)))
  }

  /** Ends the stream after pending events. Does nothing if it is closed. */
  end(): void {
    if (!this.isOpen) return
    this.#state = 'ending'
    this.#clock.clearTimeout(this.#keepAlive)
    this.#flushAfter(1)
  }

  /** Closes the connection unless the client reads soon. */
  #watch(): void {
    this.#endWatch ??= watchReader(
      this.#clock,
      () => -this.#sink.freeBytes,
      () => {
        this.#sink.cutOff()
        this.#leave()
      }
    )
  }

  /** Called when the client has read pending data. */
  #goOn(): void {
    if (this.#state === 'over') return
    this.#endWatch?.()
    this.#endWatch = undefined
    if (this.#waiting !== '' && !this.#isDue) this.#flush()
    if (this.#sink.freeBytes > 0) this.#resume()
    else if (this.#drained) this.#watch()
  }

  #resume(): void {
    this.#drained = undefined
    this.#wake()
  }

  #flushAfter(rounds: number): void {
    this.#isDue = true
    afterRounds(rounds, () => this.#flush())
  }

  #flush(): void {
    this.#isDue = false
    if (this.#state === 'over') return
    if (this.#waiting === '') this.#sink.write('')
    while (this.#waiting !== '' && this.#sink.freeBytes > 0) {
      const text = this.#waiting
      // Does not split a surrogate pair.
      const last = text.charCodeAt(AT_ONCE - 1)
      const end = last >= 0xd800 && last < 0xdc00 ? AT_ONCE - 1 : AT_ONCE
      // Assigned before the write, since a sink may drain synchronously.
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
      if (this.#allowsComments && this.#sink.freeBytes > 0) this.send(':\n\n')
      this.#scheduleKeepAlive()
    }, KEEP_ALIVE_MS)
  }

  #leave(): void {
    const wasOpen = this.isOpen
    this.#state = 'over'
    this.#clock.clearTimeout(this.#keepAlive)
    this.#endWatch?.()
    this.#resume()
    if (wasOpen) this.#left()
  }
}

/** The buffer of a stream in bytes; above it, the stream waits for its client. */
const HIGH_WATER_BYTES = 64 * 1024

/** The events of a sink. */
export interface SinkEvents {
  /** The buffer has space again. */
  readonly drained: () => void
  /** The client has disconnected. Called once, and not after the end. */
  readonly gone: () => void
}

/** The output of a stream to one client. */
export interface StreamSink {
  /** Called once, first. */
  open(events: SinkEvents): void
  /** Free bytes in the buffer; with 0 or less, senders have to wait. */
  readonly freeBytes: number
  /** Writes text at once; the empty text sends the headers. */
  write(text: string): void
  /** Ends the response. */
  end(): void
  /** Closes the connection of a client that does not read. */
  cutOff(): void
}

const UTF8 = new TextEncoder()

/** Writes to the body of a Response, which the caller of the handler sends. */
export class BodySink implements StreamSink {
  readonly body: ReadableStream<Uint8Array>
  readonly #destroy: (() => void) | undefined
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  #events: SinkEvents | undefined

  /** `destroy` closes the connection; without it, the body fails instead. */
  constructor(destroy?: () => void) {
    this.#destroy = destroy
    this.body = new ReadableStream<Uint8Array>(
      {
        start: controller => void (this.#controller = controller),
        pull: () => this.#events?.drained(),
        cancel: () => this.#events?.gone()
      },
      new ByteLengthQueuingStrategy({ highWaterMark: HIGH_WATER_BYTES })
    )
  }

  open(events: SinkEvents): void {
    this.#events = events
  }

  get freeBytes(): number {
    return Number(this.#controller?.desiredSize)
  }

  write(text: string): void {
    if (text !== '') this.#controller?.enqueue(UTF8.encode(text))
  }

  end(): void {
    this.#controller?.close()
  }

  cutOff(): void {
    if (this.#destroy) this.#destroy()
    else this.#controller?.error(new Error('The client read nothing for 30 seconds.'))
  }
}

/** Writes to Node's response directly, which takes half the time of a web stream in between. */
export class NodeResponseSink implements StreamSink {
  readonly #response: ServerResponse
  readonly #gone: AbortSignal
  readonly #headers: OutgoingHttpHeaders
  #hasBegun = false

  constructor({ response, socket }: DirectResponse, headers: OutgoingHttpHeaders) {
    this.#response = response
    this.#gone = disconnectSignal(socket)
    this.#headers = headers
  }

  open({ drained, gone }: SinkEvents): void {
    if (this.#gone.aborted) return gone()
    this.#response.writeHead(200, this.#headers)
    this.#response.on('drain', drained).on('finish', onAbort(this.#gone, gone))
  }

  get freeBytes(): number {
    return HIGH_WATER_BYTES - this.#response.writableLength
  }

  write(text: string): void {
    if (text !== '') this.#response.write(text)
    else if (!this.#hasBegun) this.#response.flushHeaders()
    this.#hasBegun = true
  }

  end(): void {
    this.#response.end()
  }

  cutOff(): void {
    this.#response.destroy()
  }
}
