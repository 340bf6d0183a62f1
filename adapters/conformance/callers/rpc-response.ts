import { A2AError } from '../../../machines/protocol/errors.ts'
import { fieldsOf } from '../fields-of.ts'
import type { Note } from './caller.ts'
import { rpcRefusal } from './error-notes.ts'

/** A JSON-RPC response, as far as it is looked into here. */
export interface RpcResponse {
  readonly id?: unknown
  readonly result?: unknown
  readonly error?: unknown
  readonly streamEnd?: unknown
  readonly 'a2a-service-parameters'?: { readonly 'a2a-extensions'?: string }
}

/** What stands in a response to the request of an id. Throws what it refuses with, and InvalidAgentResponse for what is no response. */
export function resultOf(response: unknown, id: unknown, note: Note): unknown {
  const { jsonrpc, id: found, result, error } = fieldsOf(response)
  note(14, jsonrpc === '2.0' && found === id, `jsonrpc "2.0" and id ${JSON.stringify(id)}`, response)
  if (error !== undefined && error !== null) throw rpcRefusal(error, note)
  if (result === undefined) throw new A2AError('InvalidAgentResponse', `The answer is no JSON-RPC response: ${JSON.stringify(response)?.slice(0, 120)}`)
  return result
}
