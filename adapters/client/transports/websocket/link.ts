import { isA2AError } from '../../../../machines/protocol/errors.ts'
import { onMessageEvent } from '../../../../runtime/primitives/event-loop.ts'
import { closedHere, mayPass, nobodyAnswers, unreadable, wasLost } from '../../retries/lost-errors.ts'
import { BackOff, type BackOffOptions, type LinkState, LinkWatch } from '../../retries/transport-state.ts'
import type { ClientSocket } from './client-socket.ts'

export interface LinkOptions extends BackOffOptions {
  readonly url: string
  /** Opens a socket. Rejects if the agent is unreachable, and when the signal aborts. */
  readonly open: (signal: AbortSignal) => Promise<ClientSocket>
}

/** The owner of a link. */
export interface LinkUser {
  /** The connection is open, for the first time or again. */
  opened(): void
  received(text: string): void
  /** Nothing has arrived for a while: send something that the agent answers. */
  silent(): void
  /** The link is closed for good. */
  closed(error: unknown): void
}

/** Time limit for opening a socket. */
const OPENING_MS = 10_000

/** Silence after which a ping is sent, and the time limit for its answer. */
const SILENCE_MS = 25_000
const SIGN_OF_LIFE_MS = 10_000

/** Close codes after which retrying is pointless: the client broke a rule, or has no access any more. */
const FINAL_CODES: readonly number[] = [1002, 1003, 1007, 1008, 1009, 4401, 4403]

/** A connection that is reopened when it is lost, until it is closed or the time limit for retries has passed. */
export class ReconnectingLink {
  readonly #options: LinkOptions
  readonly #user: LinkUser
  readonly #backOff: BackOff
  readonly #watch = new LinkWatch('connecting')
  #socket: ClientSocket | undefined
  #opening = new AbortController()
  #timer: unknown
  #closed = Promise.resolve()

  constructor(options: LinkOptions, user: LinkUser) {
    this.#options = options
    this.#backOff = new BackOff(options)
    this.#user = user
  }

  get state(): LinkState {
    return this.#watch.state
  }

  /** Calls `watcher` on every change to a state. Returns its removal. */
  on(state: LinkState, watcher: () => void): () => void {
    return this.#watch.on(state, watcher)
  }

  /** Opens the first connection. Rejects, and closes for good, if the agent is unreachable or the signal aborts. */
  async start(signal?: AbortSignal): Promise<void> {
    try {
      this.#opened(await this.#open(signal))
    } catch (error) {
      this.#end(error)
      throw error
    }
  }

  /** Sends a frame if the connection is open. */
  send(text: string): void {
    if (this.state === 'open') this.#socket?.send(text)
  }

  /** Closes the connection for good. Resolves when it is closed. */
  async close(): Promise<void> {
    const socket = this.#socket
    this.#end(closedHere(this.#options.url))
    socket?.close(1000, 'The client is done.')
    await this.#closed
  }

  /** Opens a socket. The attempt is abandoned after the time limit, or when the link closes. */
  async #open(signal?: AbortSignal): Promise<ClientSocket> {
    const { clock, open, url } = this.#options
    const opening = new AbortController()
    this.#opening = opening
    const timer = clock.setTimeout(() => opening.abort(nobodyAnswers(url)), OPENING_MS)
    try {
      return await open(signal ? AbortSignal.any([signal, opening.signal]) : opening.signal)
    } finally {
      clock.clearTimeout(timer)
    }
  }

  #opened(socket: ClientSocket): void {
    if (this.state === 'closed') return socket.close(1000, 'The client is done.')
    this.#socket = socket
    const receive = ({ data }: { readonly data: unknown }) => {
      if (this.#socket !== socket) return
      // Not reset on open: a server that accepts connections and drops them would be retried for ever.
      this.#backOff.reset()
      this.#listen(SILENCE_MS)
      this.#user.received(String(data))
    }
    onMessageEvent(socket, receive, error => {
      this.#end(unreadable(this.#options.url, error))
      socket.close(1007, 'The frame cannot be read.')
    })
    this.#closed = new Promise(resolve =>
      socket.addEventListener('close', ({ code, reason }) => {
        resolve()
        if (this.#socket === socket) this.#dropped(code, reason)
      })
    )
    this.#listen(SILENCE_MS)
    this.#watch.enter('open')
    this.#user.opened()
  }

  /** Waits for the next frame. After silence a ping is sent; without an answer the connection is lost. */
  #listen(waitMs: number): void {
    const { clock } = this.#options
    clock.clearTimeout(this.#timer)
    this.#timer = clock.setTimeout(() => {
      if (waitMs === SIGN_OF_LIFE_MS) return this.#dropped(1006, 'no answer to a ping')
      this.#listen(SIGN_OF_LIFE_MS)
      this.#user.silent()
    }, waitMs)
  }

  #dropped(code: number, reason: string): void {
    const why = reason ? `${code}, ${reason}` : String(code)
    const error = wasLost(this.#options.url, why)
    this.#socket?.close()
    this.#socket = undefined
    if (FINAL_CODES.includes(code)) return this.#end(error)
    this.#watch.enter('lost')
    this.#tryLater(error)
  }

  #tryLater(error: unknown): void {
    const { clock } = this.#options
    const waitMs = this.#backOff.next(mayPass(error) ? error.retryAfterMs : 0)
    if (waitMs === undefined) return this.#end(error)
    clock.clearTimeout(this.#timer)
    this.#timer = clock.setTimeout(() => this.#tryNow(), waitMs)
  }

  #tryNow(): void {
    this.#watch.enter('connecting')
    this.#open().then(
      socket => this.#opened(socket),
      error => {
        if (this.state === 'closed') return
        if (isA2AError(error) && !mayPass(error)) this.#end(error)
        else this.#tryLater(error)
      }
    )
  }

  #end(error: unknown): void {
    if (this.state === 'closed') return
    this.#options.clock.clearTimeout(this.#timer)
    this.#opening.abort(error)
    this.#socket = undefined
    this.#watch.enter('closed')
    this.#user.closed(error)
  }
}
