import type { AgentCard } from '../../machines/protocol/card.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { CallContext } from '../../runtime/access/call-context.ts'
import type { Kind } from '../../runtime/primitives/options.ts'
import type { Method } from './dispatch.ts'

/** An older version of A2A that servers speak beside 1.0. */
export interface Dialect {
  /** Major.Minor as in `A2A-Version` and in the card. */
  readonly version: string
  /** The JSON-RPC method of this name; `undefined` if this dialect has none. It gives what stands in `result`. Errors are A2AErrors. */
  method(name: string): Method | undefined
  /**
   * Whether a call that names no version is one of this dialect's, where another has a method of this name too. A dialect
   * without it has those calls that no other claims.
   */
  readonly claims?: (params: unknown, call: CallContext) => Promise<boolean>
  /** What a request by REST calls; `undefined` if there is no such route. Not there in versions without REST. */
  readonly rest?: (request: RestRequest) => RestCall | undefined
  /** A card in this dialect's form. */
  card(card: AgentCard): unknown
  /**
   * A card of 1.0 with this dialect's members added, for clients that request the card without a version. Not there in
   * dialects whose clients look for the card at another address.
   */
  readonly withCard?: (card: AgentCard) => AgentCard
}

/** The option `dialects` of what is served. */
export const DIALECTS: Kind = [
  value => Array.isArray(value) && value.every(each => isObject(each) && typeof each['version'] === 'string' && typeof each['method'] === 'function'),
  'a list such as [dialect03(runtime)], of taskchart/legacy'
]

/** A request by REST, as far as a dialect reads it. */
export interface RestRequest {
  readonly verb: string
  /** Without the base and with the dialect's version prefix: `/v1/message:send`. */
  readonly path: string
  readonly query: URLSearchParams
  /** Parsed JSON; `undefined` if the request has none. */
  readonly body: unknown
}

/** A request by REST that has its parameters: it gives JSON, or the events of a stream. Errors are A2AErrors. */
export type RestCall =
  | { readonly streaming: false; readonly answer: (call: CallContext) => Promise<unknown> }
  | { readonly streaming: true; readonly events: (call: CallContext) => AsyncGenerator<object, void, undefined> }
