import type { Clock } from '../../runtime/clock.ts'

/** How often a stream says that it lives when it has nothing else to say. */
export const KEEP_ALIVE_MS = 15_000

/** How long a client may read nothing while events wait for it. */
export const STUCK_MS = 30_000

/** Bytes that may wait for a client before its stream waits for it. */
const HIGH_WATER_BYTES = 64 * 1024

/** Events that one stream sends before the others, and the other work of the process, get their turn. */
const EVENTS_PER_TURN = 32

const UTF8 = new TextEncoder()

/** One server-sent event; `id` is what a client that comes back names in `Last-Event-ID`. */
export function sentEvent(data: string, id: number | undefined): string {
  return id === undefined ? `data: ${data}\n\n` : `id: ${id}\ndata: ${data}\n\n`
}

/**
 * The body of a response made of server-sent events. Those of one turn of the event loop leave together. It asks for no
 * more events while more than 64 KiB wait for the client, which is cut off when it reads nothing for {@link STUCK_MS}:
 * by `cutOff`, which ends its connection, or else by an error of the body. `stop` is called when the client is gone;
 * `events` then have to end. They do not throw.
 */
export function eventStream(events: AsyncIterable<string>, clock: Clock, stop: () => void, cutOff?: () => void): ReadableStream<Uint8Array> {
  const stream = new EventStream(events, clock, stop, cutOff)
  return new ReadableStream<Uint8Array>(stream, new ByteLengthQueuingStrategy({ highWaterMark: HIGH_WATER_BYTES }))
}

class EventStream {
  readonly #events: AsyncIterable<string>
  readonly #clock: Clock
  readonly #stop: () => void
  readonly #cutOff: (() => void) | undefined
  #waiting = ''
  #flush: NodeJS.Immediate | undefined
  #keepAlive: unknown
  #wanted = () => {}
  #isOver = false

  constructor(events: AsyncIterable<string>, clock: Clock, stop: () => void, cutOff?: () => void) {
    this.#events = events
    this.#clock = clock
    this.#stop = stop
    this.#cutOff = cutOff
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#scheduleKeepAlive(controller)
    void this.#pump(controller)
  }

  pull(): void {
    this.#wanted()
  }

  cancel(): void {
    this.#end()
    this.#stop()
    this.#wanted()
  }

  async #pump(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    let sent = 0
    for await (const event of this.#events) {
      if (this.#isOver) return
      this.#waiting += event
      this.#flush ??= setImmediate(() => this.#send(controller))
      sent += 1
      if (this.#waiting.length > HIGH_WATER_BYTES) this.#send(controller)
      if (roomOf(controller) <= 0) await this.#room(controller)
      else if (sent % EVENTS_PER_TURN === 0) await new Promise(resolve => setImmediate(resolve))
    }
    if (this.#isOver) return
    this.#send(controller)
    this.#end()
    controller.close()
  }

  #send(controller: ReadableStreamDefaultController<Uint8Array>): void {
    clearImmediate(this.#flush)
    this.#flush = undefined
    if (this.#waiting === '') return
    controller.enqueue(UTF8.encode(this.#waiting))
    this.#waiting = ''
  }

  /** Waits until the client has read what waits for it, or is gone, or is cut off. */
  async #room(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const timer = this.#clock.setTimeout(() => {
      if (this.#cutOff) this.#cutOff()
      else controller.error(new Error('The client read nothing for 30 seconds.'))
      this.cancel()
    }, STUCK_MS)
    await new Promise<void>(resolve => (this.#wanted = resolve))
    this.#clock.clearTimeout(timer)
  }

  #scheduleKeepAlive(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#keepAlive = this.#clock.setTimeout(() => {
      if (this.#waiting === '' && roomOf(controller) > 0) controller.enqueue(UTF8.encode(':\n\n'))
      this.#scheduleKeepAlive(controller)
    }, KEEP_ALIVE_MS)
  }

  #end(): void {
    this.#isOver = true
    clearImmediate(this.#flush)
    this.#clock.clearTimeout(this.#keepAlive)
  }
}

/** Bytes that may still wait; 0 once the stream has failed. */
function roomOf({ desiredSize }: ReadableStreamDefaultController<Uint8Array>): number {
  return Number(desiredSize)
}
