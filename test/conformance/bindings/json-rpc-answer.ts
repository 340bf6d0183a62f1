import { Refusal } from '../binding.ts'

/** A JSON-RPC response, as far as it is looked into here. */
export interface RpcResponse {
  readonly id?: unknown
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
  readonly streamEnd?: boolean
  readonly 'a2a-service-parameters'?: { readonly 'a2a-extensions'?: string }
}

/** What stands in a response. Throws what it refuses with. */
export function resultOf({ result, error }: RpcResponse): unknown {
  if (!error) return result
  throw new Refusal(String(error.code), error.message, Array.isArray(error.data) ? error.data : [])
}
