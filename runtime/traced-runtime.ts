import { OPERATIONS, type OperationName } from '../machines/protocol/operations.ts'
import type { CallContext } from './access/call-context.ts'
import type { Runtime } from './runtime.ts'
import { callAttributes } from './telemetry/attributes.ts'
import { spanned, spannedStream, type SpannedCall } from './telemetry/spans.ts'
import type { Telemetry, TelemetrySpan } from './telemetry/telemetry.ts'

type Operation<Result> = (params: unknown, call: CallContext) => Result
type Answer = Operation<Promise<unknown>>
type Stream = Operation<AsyncGenerator<unknown, void, undefined>>

/**
 * A runtime with a span of kind `server` for each call, in the trace of the call, else below the active span. The span lasts as long as
 * the caller waits, or reads the stream. Tasks that the call opens belong to its trace.
 */
export function tracedRuntime(runtime: Runtime, telemetry: Telemetry): Runtime {
  const operations = runtime as unknown as Readonly<Record<OperationName, Operation<unknown>>>
  const traced = Object.entries(OPERATIONS).map(([method, { name, streaming }]) => {
    const run = operations[name]
    const spannedCall = (params: unknown, { binding, trace, signal }: CallContext): SpannedCall => ({
      begin: () =>
        telemetry.begin({
          name: method,
          kind: 'server',
          parent: trace,
          attributes: callAttributes(method, binding, params)
        }),
      binding,
      signal
    })
    const within = (call: CallContext, { carrier }: TelemetrySpan): CallContext => ({ ...call, trace: carrier })
    const answer: Answer = (params, call) =>
      spanned(spannedCall(params, call), span => (run as Answer)(params, within(call, span)))
    const stream: Stream = (params, call) =>
      spannedStream(spannedCall(params, call), span => (run as Stream)(params, within(call, span)))
    return [
      name,
      (params: unknown, call: CallContext = {}) => (streaming ? stream(params, call) : answer(params, call))
    ]
  })
  return { ...runtime, ...(Object.fromEntries(traced) as Pick<Runtime, OperationName>) }
}
