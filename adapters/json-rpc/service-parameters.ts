import type { CallContext, Conditions } from '../../runtime/access/call-context.ts'
import { memoizeLast } from '../../runtime/primitives/collections.ts'
import type { Telemetry, TraceCarrier } from '../../runtime/telemetry-port.ts'
import type { ServiceParameters } from './dispatch.ts'

/** The service parameters of the reliability extension, with the names of their conditions. */
const CONDITIONS: readonly (readonly [string, keyof Conditions])[] = [
  ['taskchart-after-generation', 'afterGeneration'],
  ['taskchart-if-generation-match', 'ifGenerationMatch'],
  ['taskchart-current-generation', 'currentGeneration']
]

/** The version, conditions and extensions of a call; `activated` are the extensions that the runtime supports. */
export type CallParameters = Required<Pick<CallContext, 'version' | 'extensions' | 'conditions'>> & {
  readonly activated: readonly string[]
}

/**
 * Reads the service parameters (§3.2.6) of a request. `defaults` come from a connection's handshake; `supported` from
 * the runtime.
 */
export function callParameters(
  parameters: ServiceParameters,
  defaults: { readonly version: string; readonly extensions: string },
  supported: readonly string[]
): CallParameters {
  const conditions: { -readonly [Name in keyof Conditions]: string } = {}
  for (const [name, condition] of CONDITIONS) {
    const value = parameters.get(name)
    if (value !== undefined) conditions[condition] = value
  }
  const extensions = urisIn(parameters.get('a2a-extensions') ?? defaults.extensions)
  const activated = supported.filter(uri => extensions.includes(uri))
  return { version: parameters.get('a2a-version') ?? defaults.version, extensions, conditions, activated }
}

/** The parameters of a call without extensions, which nearly all calls of a client share. */
export const plainParameters = memoizeLast(version => callParameters(new Map(), { version, extensions: '' }, []))

function urisIn(list: string): string[] {
  return list === ''
    ? []
    : list
        .split(',')
        .map(uri => uri.trim())
        .filter(uri => uri !== '')
}

/** The trace context of a request, and its binding. */
export type TraceParameters = Pick<CallContext, 'trace' | 'binding'>

/** Service parameters or HTTP headers, by names in lower case. */
interface Fields {
  get(name: string): string | null | undefined
}

/** The maximum length of a value, in characters: the one that W3C Baggage requires. Longer values are ignored. */
const LONGEST_VALUE = 8192

/** Reads the trace context. An invalid one is not an error: the call then belongs to no trace. */
export function traceParameters({ fields }: Telemetry, given: Fields, binding?: string): TraceParameters {
  const trace: Record<string, string> = {}
  for (const name of fields) {
    const value = given.get(name)
    if (value && value.length <= LONGEST_VALUE) trace[name] = name === 'traceparent' ? newest(value) : value
  }
  const context: TraceCarrier | undefined = Object.keys(trace).length > 0 ? trace : undefined
  return { binding, trace: context }
}

/** An HTTP instrumentation of the client may append its own value. The last one counts. */
function newest(traceparent: string): string {
  return traceparent.slice(traceparent.lastIndexOf(',') + 1).trim()
}
