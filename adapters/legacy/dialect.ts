import type { AgentCard } from '../../machines/protocol/card.ts'
import type { CallContext } from '../../runtime/call.ts'

/** An older version of A2A that servers speak beside 1.0. */
export interface Dialect {
  /** Major.Minor as in `A2A-Version` and in the card. */
  readonly version: string
  /** Whether a JSON-RPC method is one of this dialect's, and then whether it answers with a stream. */
  method(name: string): { readonly streaming: boolean } | undefined
  /** Calls a JSON-RPC method. Gives what stands in `result`: JSON, or the stream's events. Errors are A2AErrors. */
  call(name: string, params: unknown, call: CallContext): Promise<unknown> | AsyncGenerator<object, void, undefined>
  /** Calls by REST, `path` without the base and with its version prefix (`/v1/message:send`). `undefined`: there is no such route. Bodies are parsed JSON. */
  rest(request: RestRequest, call: CallContext): RestAnswer | undefined
  /** A card in this dialect's form. `url` is the base address, the JSON-RPC endpoint. */
  card(card: AgentCard): unknown
}

/** A request by REST, as far as a dialect reads it. */
export interface RestRequest {
  readonly verb: string
  readonly path: string
  readonly query: URLSearchParams
  readonly body: unknown
}

/** What becomes of a request by REST: JSON, or the events of a stream. Errors are A2AErrors. */
export type RestAnswer =
  | { readonly streaming: false; readonly answer: Promise<unknown> }
  | { readonly streaming: true; readonly events: AsyncGenerator<object, void, undefined> }
