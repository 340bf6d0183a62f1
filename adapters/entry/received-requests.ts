import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { overShare, type SharedLimit, type Owner } from '../../runtime/access/shares.ts'
import { PrivateProperty } from '../../runtime/primitives/collections.ts'
import { Gathering, onAbort } from '../../runtime/primitives/event-loop.ts'
import type { RefusedRequest } from './admission.ts'
import { refusalOf } from './answers.ts'
import { connectionOf, disconnectSignal, type DirectResponse } from './connection.ts'
import type { NodeListener } from './small-request.ts'

/** A request in the queue of its connection. */
interface Queued {
  readonly response: ServerResponse
  readonly socket: Socket
  begin(): void
  /** Called when the response has closed. */
  end(): void
}

/** The queue of one connection: whether a request is being answered, and the waiting ones. */
interface Line {
  isBusy: boolean
  readonly waiting: Queued[]
}

/**
 * Answers the requests of one connection one at a time, in order (RFC 9112 §9.3.2). Node passes on every request of a
 * chunk at once: answered together, all answers would wait in memory for a client that may not read. With more than
 * `most` requests waiting, the connection is not read.
 */
export class InTurn {
  readonly #most: number
  readonly #lines = new PrivateProperty<Socket, Line>()

  constructor(most: number) {
    this.#most = most
  }

  /**
   * Begins a request after the earlier responses have finished, unless the connection is closed, and ends it when its
   * response has closed.
   */
  add(request: Queued): void {
    const { socket, response } = request
    const line = this.#lineOf(socket)
    response.on('close', () => {
      request.end()
      this.#next(line, socket)
    })
    if (!line.isBusy) {
      line.isBusy = true
      return request.begin()
    }
    line.waiting.push(request)
    if (line.waiting.length > this.#most) socket.pause()
  }

  #next(line: Line, socket: Socket): void {
    if (socket.destroyed) return
    const request = line.waiting.shift()
    if (line.waiting.length === this.#most) socket.resume()
    line.isBusy = request !== undefined
    request?.begin()
  }

  #lineOf(socket: Socket): Line {
    const known = this.#lines.get(socket)
    if (known) return known
    const line: Line = { isBusy: false, waiting: [] }
    this.#lines.set(socket, line)
    // Node resumes the connection whenever a body is read, even after a pause in the same turn. Emitting `pause` stops
    // it.
    socket.on('resume', () => {
      if (line.waiting.length <= this.#most) return
      socket.pause()
      socket.emit('pause')
    })
    return line
  }
}

/**
 * The requests that a server is answering. A small body arrives right after its request, so a request is passed on
 * after that. If other connections have requests too, it is passed on at the end of the round of the event loop.
 */
export class Answering {
  underWay = 0
  readonly shares: SharedLimit
  readonly #answer: NodeListener
  readonly #pass = (request: ReceivedRequest) => this.#answer(request.request, request.response, request)
  readonly #gathering = new Gathering(this.#pass)

  constructor(shares: SharedLimit, answer: NodeListener) {
    this.shares = shares
    this.#answer = answer
  }

  add(request: ReceivedRequest): void {
    this.underWay += 1
    const isSame = this.#gathering.isSame(connectionOf({ direct: request }))
    if (isSame && this.underWay === 1) process.nextTick(this.#pass, request)
    else this.#gathering.add(request)
  }
}

/** A request to a server, which counts from its turn on its connection until its response has closed. */
export class ReceivedRequest implements DirectResponse, Queued {
  readonly response: ServerResponse
  readonly socket: Socket
  readonly request: IncomingMessage
  readonly #answering: Answering
  #state: 'waiting' | 'under way' | 'over' = 'waiting'
  #owner: Owner | undefined
  /** Whether the client waits with the body (RFC 9110 §10.1.1). */
  readonly #waits: boolean

  constructor(request: IncomingMessage, response: ServerResponse, answering: Answering, waits = false) {
    this.#waits = waits
    this.response = response
    // That of the response is null while another is being answered.
    this.socket = request.socket
    this.request = request
    this.#answering = answering
  }

  begin(): void {
    const { response, socket } = this
    this.#state = 'under way'
    // A response behind that of a health check or a refusal emits no `close` when its connection is closed.
    if (!response.socket)
      response.once(
        'close',
        onAbort(disconnectSignal(socket), () => this.end())
      )
    this.#answering.add(this)
  }

  invite(): void {
    if (this.#waits) this.response.writeContinue()
  }

  claim(owner: Owner): RefusedRequest | undefined {
    const { shares } = this.#answering
    const refusal = shareRefusal(shares, owner)
    if (refusal || this.#state !== 'under way') return refusal
    this.#owner = owner
    shares.add(owner)
    return undefined
  }

  end(): void {
    if (this.#state === 'under way') this.#answering.underWay -= 1
    this.#state = 'over'
    if (this.#owner) this.#answering.shares.add(this.#owner, -1)
    this.#owner = undefined
  }
}

/** The limit that callers share. */
const CONNECTIONS = {
  limit: 'connections',
  what: 'connections or pending requests',
  advice: 'Close one, or retry later.'
} as const

/** The refusal of a connection or pending request over its caller's share; `undefined` within it. */
export function shareRefusal(shares: SharedLimit, owner: Owner): RefusedRequest | undefined {
  const exceeded = shares.exceeded(owner)
  return exceeded && refusalOf(overShare(CONNECTIONS, exceeded, owner, shares))
}
