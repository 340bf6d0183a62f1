import { handshake } from '../../test/fixtures/servers/raw-socket.ts'
import { KEYS } from './keys.ts'
import type { Random } from './random.ts'
import type { Tally } from './tally.ts'
import { Wire } from './wire.ts'

/** Ids of tasks that attacks are made with. */
export interface Prey {
  /** Tasks of the attacker: of 3 MB of messages, near the bound of a task, that ask, that run. */
  readonly large: string
  readonly grown: string
  readonly asking: string
  readonly running: string
  /** A task of the other caller. */
  readonly foreign: string
  /** Tasks that attacks have opened; the oldest make room. */
  readonly opened: string[]
}

/** One of the attacker's connections at a time, for one attack. */
export class Lane {
  readonly random: Random
  readonly prey: Prey
  readonly port: number
  /** How long an attack waits that does nothing but wait. */
  readonly holdMs: number
  readonly #tally: Tally
  readonly #end: AbortSignal
  #wire: Wire | undefined
  #lastId = 0

  constructor(given: { port: number; random: Random; prey: Prey; holdMs: number; tally: Tally; end: AbortSignal }) {
    this.port = given.port
    this.random = given.random
    this.prey = given.prey
    this.holdMs = given.holdMs
    this.#tally = given.tally
    this.#end = given.end
  }

  get isOver(): boolean {
    return this.#end.aborted
  }

  /** The text of a request for a method, with an id of its own. */
  request(method: string, params: string): string {
    this.#lastId += 1
    return `{"jsonrpc":"2.0","id":${this.#lastId},"method":"${method}","params":${params}}`
  }

  /** A new connection in place of the one before. */
  async connection(): Promise<Wire> {
    this.close(this.random.below(2) === 0)
    this.#wire = await Wire.to(this.port, this.#tally)
    return this.#wire
  }

  /** A new connection after a handshake for WebSocket. */
  async webSocket(): Promise<Wire> {
    const wire = await this.connection()
    await wire.write(
      handshake(`ws://127.0.0.1:${this.port}/`, { more: ['A2A-Version: 1.0', `x-api-key: ${KEYS.attacker}`] }),
      this.holdMs
    )
    return wire
  }

  /** The bytes of a request over HTTP. */
  http(verb: string, target: string, body = '', headers: readonly string[] = []): Buffer {
    const type =
      verb === 'POST' && !headers.some(line => /^content-type:/i.test(line)) ? ['Content-Type: application/json'] : []
    const length =
      verb === 'POST' && !headers.some(line => /^(?:content-length|transfer-encoding):/i.test(line))
        ? [`Content-Length: ${Buffer.byteLength(body)}`]
        : []
    const host = headers.some(line => /^host:/i.test(line)) ? [] : [`Host: 127.0.0.1:${this.port}`]
    const version = headers.some(line => /^a2a-version:/i.test(line)) ? [] : ['A2A-Version: 1.0']
    return Buffer.from(
      [
        `${verb} ${target} HTTP/1.1`,
        ...host,
        ...version,
        `x-api-key: ${KEYS.attacker}`,
        ...type,
        ...length,
        ...headers,
        '',
        body
      ].join('\r\n')
    )
  }

  close(isRude: boolean): void {
    this.#wire?.end(isRude)
    this.#wire = undefined
  }
}

/** One attack on one connection. It ends soon after `lane.holdMs`, or when the lane is over. */
export type Attack = (lane: Lane) => Promise<void>
