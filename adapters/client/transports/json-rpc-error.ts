import { isObject } from '../../../machines/protocol/codec/json.ts'

/**
 * The error in the text of a JSON-RPC 2.0 response; `undefined` for every other text. Gateways answer with JSON of their own that
 * has an `error`, too, which says nothing that their status does not.
 */
export function jsonRpcErrorIn(text: string): Record<string, unknown> | undefined {
  const { jsonrpc, error } = answerIn(text)
  return jsonrpc === '2.0' && isObject(error) && Number.isInteger(error.code) ? error : undefined
}

function answerIn(text: string): Record<string, unknown> {
  try {
    const answer: unknown = JSON.parse(text)
    return isObject(answer) ? answer : {}
  } catch {
    return {}
  }
}
