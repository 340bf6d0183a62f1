import type { AgentCard } from '../../machines/protocol/card.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { CallContext } from '../../runtime/access/call-context.ts'
import type { Kind } from '../../runtime/primitives/options.ts'

/** An older version of A2A that a server supports beside 1.0. */
export interface Dialect {
  /** Major.Minor, as in `A2A-Version` and in the card. */
  readonly version: string
  /**
   * The JSON-RPC method of a name; `undefined` if there is none. It returns the value for `result`. Errors are
   * A2AErrors.
   */
  method(name: string): Method | undefined
  /**
   * Whether a call without a version belongs to this dialect, if another dialect has a method of the same name. A
   * dialect without this function gets the calls that no other claims.
   */
  readonly claims?: (params: unknown, call: CallContext) => Promise<boolean>
  /** The call for a REST request; `undefined` if there is no such route. Absent in versions without REST. */
  readonly rest?: (request: RestRequest) => RestCall | undefined
  /** A card in this dialect's form. */
  card(card: AgentCard): unknown
  /**
   * A card of 1.0 with this dialect's members added, for clients that request the card without a version. Absent in
   * dialects whose clients request the card at another URL.
   */
  readonly withCard?: (card: AgentCard) => AgentCard
}

/** The kind of the option `dialects`. */
export const DIALECTS: Kind = [
  value =>
    Array.isArray(value) &&
    value.every(each => isObject(each) && typeof each['version'] === 'string' && typeof each['method'] === 'function'),
  'a list such as [dialect03(runtime)], of taskchart/http'
]

/** A REST request for a dialect. */
export interface RestRequest {
  readonly verb: string
  /** Without the base and with the dialect's version prefix: `/v1/message:send`. */
  readonly path: string
  readonly query: URLSearchParams
  /** Parsed JSON; `undefined` if the request has none. */
  readonly body: unknown
}

/** A REST call with its parameters. It returns JSON, or the events of a stream. Errors are A2AErrors. */
export type RestCall =
  | { readonly streaming: false; readonly answer: (call: CallContext) => Promise<unknown> }
  | { readonly streaming: true; readonly events: (call: CallContext) => AsyncGenerator<object, void, undefined> }

/** A method that clients call. It answers once, or with a stream. */
export type Method = AnsweringMethod | StreamingMethod

export interface AnsweringMethod {
  readonly streaming: false
  readonly answer: (params: unknown, call: CallContext) => Promise<unknown>
}

export interface StreamingMethod {
  readonly streaming: true
  readonly events: (params: unknown, call: CallContext) => AsyncGenerator<object, void, undefined>
}
