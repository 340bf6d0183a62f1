import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import type { ClientSocket } from '../../adapters/client/transports/websocket/client-socket.ts'
import { HIGH_WATER_BYTES, type ServedSocket } from '../../adapters/websocket/outbox.ts'
import { textsIn } from '../fixtures/servers/raw-socket.ts'
import type { WorldConfig } from './config.ts'
import type { Random } from './random.ts'
import type { ClockView } from './virtual-clock.ts'

const OPEN = 1
const CLOSING = 2
const CLOSED = 3

/** How long an end may take to notice that the other is gone. */
const UNNOTICED_MS = 20_000

/** How long a client may read nothing: longer than the server puts up with. */
const LONGEST_STALL_MS = 40_000

/** What a connection is made of. `tapped` hears of each frame as it is sent. */
export interface WireOptions {
  readonly config: WorldConfig
  readonly random: Random
  readonly clock: ClockView
  /** The time of the process of the server, if that may hang. */
  readonly serverClock?: ClockView
  /** Whether nothing is to go wrong any more. */
  readonly isCalm: () => boolean
  readonly tapped: (to: 'server' | 'client', frame: string) => void
}

/**
 * One WebSocket connection as both of its ends see it, without any bytes: frames arrive late and in order, or never,
 * and either end may hear late that the other is gone.
 */
export class Wire {
  /** The end of the client, as its code has it. */
  readonly client: ClientSocket
  /** The end of the server, as that of `ws` is, and what is below it. */
  readonly server: ServedSocket
  readonly stream: Socket
  readonly #options: WireOptions
  readonly #serverEvents = new EventEmitter()
  readonly #streamEvents = new EventEmitter()
  readonly #clientListeners = { open: [], error: [], message: [], close: [] } as Record<
    string,
    ((event: object) => void)[]
  >
  readonly #inFlight = { server: new Set<unknown>(), client: new Set<unknown>() }
  readonly #lastDueMs = { server: 0, client: 0 }
  #serverState = OPEN
  #clientState = OPEN
  #isCut = false
  #isServerGone = false
  #stalledUntilMs = 0
  #isPaused = false
  #held: string[] = []

  constructor(options: WireOptions) {
    this.#options = options
    const serverState = () => this.#serverState
    const clientState = () => this.#clientState
    this.server = Object.assign(this.#serverEvents, {
      OPEN,
      send: (frame: string) => this.#send('client', frame),
      close: (code: number, reason: string) => {
        this.server.beforeClose?.()
        this.#closeFromServer(code, reason)
      },
      terminate: () => this.cut(),
      pause: () => {
        this.#isPaused = true
      },
      resume: () => {
        this.#isPaused = false
        // A process that is dead reads nothing that waited for it.
        if (this.#isServerGone) return
        for (const frame of this.#held.splice(0)) this.#serverEvents.emit('message', Buffer.from(frame), false)
      }
    }) as unknown as ServedSocket
    Object.defineProperty(this.server, 'readyState', { get: serverState })
    const isStalled = () => this.#isStalled
    this.stream = Object.assign(this.#streamEvents, {
      write: (bytes: Buffer) => textsIn(bytes).forEach(frame => this.#send('client', frame))
    }) as unknown as Socket
    Object.defineProperty(this.stream, 'writableLength', { get: () => (isStalled() ? HIGH_WATER_BYTES + 1 : 0) })
    this.client = {
      get readyState() {
        return clientState()
      },
      send: frame => this.#send('server', frame),
      close: () => this.#closeFromClient(),
      addEventListener: (type: string, listener: (event: never) => void) =>
        void this.#clientListeners[type]?.push(listener as (event: object) => void)
    }
  }

  /** Whether both ends are open, and reach each other. */
  get isWhole(): boolean {
    return !this.#isCut && this.#serverState === OPEN && this.#clientState === OPEN
  }

  /** Cuts the connection: of what is under way in either direction, an end is lost. */
  cut(): void {
    if (this.#isCut) return
    this.#isCut = true
    this.#loseSome('server')
    this.#loseSome('client')
    this.#after('server', this.#noticeMs(), () => this.#serverClosed())
    this.#after('client', this.#noticeMs(), () => this.#clientClosed(1006, ''))
  }

  /** The server closes the connection, and does not wait for the client. */
  serverLeaves(): void {
    this.#closeFromServer(1012, 'The server restarts.')
    this.#serverClosed()
  }

  /** The process of the server dies: nothing leaves it any more, and what it sent may still arrive. */
  serverDies(): void {
    this.#isServerGone = true
    this.cut()
  }

  get #isStalled(): boolean {
    return this.#options.clock.now() < this.#stalledUntilMs
  }

  #send(to: 'server' | 'client', frame: string): void {
    const { config, random, isCalm, tapped } = this.#options
    if ((to === 'server' ? this.#clientState : this.#serverState) !== OPEN) return
    if (to === 'client' && this.#isServerGone) return
    tapped(to, frame)
    if (this.#isCut) return
    if (to === 'client' && !this.#isStalled && !isCalm() && random.chance(config.stalls)) this.#stall()
    this.#after(to, random.below(config.latencyMs + 1), () =>
      to === 'server' ? this.#toServer(frame) : this.#toClient('message', { data: frame })
    )
    if (!isCalm() && random.chance(config.cuts)) this.cut()
  }

  /** The client reads nothing for a while. */
  #stall(): void {
    const { clock, serverClock = clock, random } = this.#options
    const ms = 1 + random.below(random.chance(0.2) ? LONGEST_STALL_MS : 500)
    this.#stalledUntilMs = clock.now() + ms
    serverClock.setTimeout(() => this.#streamEvents.emit('drain'), ms)
  }

  #toServer(frame: string): void {
    if (this.#isPaused) this.#held.push(frame)
    else this.#serverEvents.emit('message', Buffer.from(frame), false)
  }

  #toClient(type: 'message' | 'close', event: object): void {
    for (const listener of this.#clientListeners[type] ?? []) listener(event)
  }

  #closeFromServer(code: number, reason: string): void {
    if (this.#serverState !== OPEN) return
    this.#serverState = CLOSING
    if (this.#isCut || this.#isServerGone) return
    this.#after('client', 0, () => this.#clientClosed(code, reason))
    this.#after('server', this.#options.config.latencyMs, () => this.#serverClosed())
  }

  #closeFromClient(): void {
    if (this.#clientState !== OPEN) return
    this.#clientState = CLOSING
    if (this.#isCut) return
    this.#after('server', 0, () => this.#serverClosed())
    this.#after('client', 2 * this.#options.config.latencyMs, () => this.#clientClosed(1000, ''))
  }

  #serverClosed(): void {
    if (this.#serverState === CLOSED) return
    this.#serverState = CLOSED
    if (this.#isServerGone) return
    this.#streamEvents.emit('close')
    this.#serverEvents.emit('close')
  }

  #clientClosed(code: number, reason: string): void {
    if (this.#clientState === CLOSED) return
    this.#clientState = CLOSED
    this.#toClient('close', { code, reason })
  }

  /** Does something at one end after a while, and after everything before it. */
  #after(at: 'server' | 'client', ms: number, run: () => void): void {
    const { clock } = this.#options
    const readsFromMs = at === 'client' ? this.#stalledUntilMs : 0
    const dueMs = Math.max(clock.now() + ms, this.#lastDueMs[at], readsFromMs)
    this.#lastDueMs[at] = dueMs
    const timer = this.#clockAt(at).setTimeout(() => {
      this.#inFlight[at].delete(timer)
      if (at === 'client' || !this.#isServerGone) run()
    }, dueMs - clock.now())
    this.#inFlight[at].add(timer)
  }

  #loseSome(at: 'server' | 'client'): void {
    const { random } = this.#options
    const inFlight = [...this.#inFlight[at]]
    for (const timer of inFlight.slice(random.below(inFlight.length + 1))) {
      this.#clockAt(at).clearTimeout(timer)
      this.#inFlight[at].delete(timer)
    }
  }

  #clockAt(at: 'server' | 'client'): ClockView {
    const { clock, serverClock = clock } = this.#options
    return at === 'server' ? serverClock : clock
  }

  #noticeMs(): number {
    const { random, config } = this.#options
    return random.below(random.chance(0.2) ? UNNOTICED_MS : config.latencyMs + 1)
  }
}
