import { A2AError } from '../../../machines/protocol/errors.ts'
import type { OperationMethod } from '../../../machines/protocol/operations.ts'
import { fieldsOf } from '../fields-of.ts'
import type { Note } from './caller.ts'
import { rpcRefusal } from './error-notes.ts'

/** The inspected members of a JSON-RPC response. */
export interface RpcResponse {
  readonly id?: unknown
  readonly result?: unknown
  readonly error?: unknown
  readonly streamEnd?: unknown
  readonly 'a2a-service-parameters'?: { readonly 'a2a-extensions'?: string }
}

/** The result in the response to a request id. Throws its error, and InvalidAgentResponse for an invalid response. */
export function resultOf(response: unknown, id: unknown, note: Note): unknown {
  const { jsonrpc, id: found, result, error } = fieldsOf(response)
  note(14, jsonrpc === '2.0' && found === id, `jsonrpc "2.0" and id ${JSON.stringify(id)}`, response)
  if (error !== undefined && error !== null) throw rpcRefusal(error, note)
  if (result === undefined)
    throw new A2AError(
      'InvalidAgentResponse',
      `The answer is no JSON-RPC response: ${JSON.stringify(response)?.slice(0, 120)}`
    )
  return result
}

/** Translates operations of A2A 1.0 to a version. */
export interface Translation {
  readonly extensionsHeader: string
  method(operation: OperationMethod): string
  params(operation: OperationMethod, params: object): unknown
  /** Converts the result of an operation, or an event of its stream. */
  result(operation: OperationMethod, result: unknown): unknown
}

export const asItIs: Translation = {
  extensionsHeader: 'a2a-extensions',
  method: operation => operation,
  params: (_, params) => params,
  result: (_, result) => result
}
