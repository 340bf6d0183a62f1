import { A2AError } from '../../machines/protocol/errors.ts'
import type { StreamResponse } from '../../machines/protocol/objects.ts'
import { operationOf, type OperationName } from '../../machines/protocol/operations.ts'
import type { CallContext } from '../../runtime/call.ts'
import type { Runtime } from '../../runtime/runtime.ts'

/** A call of an operation that is in the table: its answer, or its stream. */
export type Dispatched =
  | { readonly streaming: false; readonly answer: Promise<unknown> }
  | { readonly streaming: true; readonly events: AsyncGenerator<StreamResponse, void, undefined> }

type Operations = Record<OperationName, (params: unknown, call: CallContext) => unknown>

/** Whether a method answers with a stream; `undefined` for methods that A2A does not have. */
export function isStreaming(method: string): boolean | undefined {
  return operationOf(method)?.streaming
}

/** Calls the operation of a JSON-RPC method (§5.3). Throws MethodNotFound; all else comes with the answer or the stream. */
export function dispatch(runtime: Runtime, method: string, params: unknown, call: CallContext): Dispatched {
  const operation = operationOf(method)
  if (!operation) throw new A2AError('MethodNotFound', `There is no method ${JSON.stringify(method.slice(0, 64))} in A2A 1.0.`)
  const result = (runtime as unknown as Operations)[operation.name](params, call)
  return operation.streaming
    ? { streaming: true, events: result as AsyncGenerator<StreamResponse, void, undefined> }
    : { streaming: false, answer: result as Promise<unknown> }
}
