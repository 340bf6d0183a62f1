import { A2AError } from '../../../machines/protocol/errors.ts'
import { fromResult03, toCall03, type Call03 } from '../../v03/client.ts'
import { parameters03, type Calls } from '../calls.ts'
import type { PlacedOptions } from '../options.ts'
import type { RequestFrame } from '../requests.ts'
import { openJsonRpc } from './json-rpc.ts'

/** Connects to an agent over the JSON-RPC of 0.3. Calls and answers are in wire JSON of 1.0. */
export async function openJsonRpc03(url: string, options: PlacedOptions, isReliable: boolean): Promise<Calls> {
  return openJsonRpc(url, options, isReliable, { request, headers: parameters03, result: fromResult03 })
}

function request({ method, params }: RequestFrame): Call03 {
  const call = toCall03(method, params)
  if (call) return call
  throw notIn03(method)
}

/** The error of a method that 0.3 does not have. */
export function notIn03(method: string): A2AError {
  return new A2AError('UnsupportedOperation', `There is no ${method} in A2A 0.3, and the agent speaks nothing newer.`)
}
