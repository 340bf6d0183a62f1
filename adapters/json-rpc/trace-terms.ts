import type { CallContext } from '../../runtime/access/call-context.ts'
import type { Telemetry, TraceCarrier } from '../../runtime/telemetry/telemetry.ts'

/** What a request says of the trace that it belongs to, and how it came. */
export type TraceTerms = Pick<CallContext, 'trace' | 'binding'>

/** Service parameters, or the headers that they are over HTTP, by names in lower case. */
interface Fields {
  get(name: string): string | null | undefined
}

/** The longest value that is read, in characters: as much as W3C Baggage asks everybody to pass on. Longer ones are as if absent. */
const LONGEST_VALUE = 8192

/** Reads where a request belongs. What is wrong with that is no error: then it is in no trace. */
export function traceTerms({ fields }: Telemetry, given: Fields, binding?: string): TraceTerms {
  const trace: Record<string, string> = {}
  for (const name of fields) {
    const value = given.get(name)
    if (value && value.length <= LONGEST_VALUE) trace[name] = name === 'traceparent' ? newest(value) : value
  }
  const carrier: TraceCarrier | undefined = Object.keys(trace).length > 0 ? trace : undefined
  return { binding, trace: carrier }
}

/** What traces a client's HTTP by itself adds a field of its own to that of the call, instead of taking its place. */
function newest(traceparent: string): string {
  return traceparent.slice(traceparent.lastIndexOf(',') + 1).trim()
}
