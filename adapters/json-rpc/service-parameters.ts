import type { CallContext, Conditions } from '../../runtime/access/call-context.ts'
import type { Telemetry, TraceCarrier } from '../../runtime/telemetry/telemetry.ts'
import type { ServiceParameters } from './envelope.ts'

/** The service parameters of the reliability extension, and the conditions that they set. */
const CONDITIONS: readonly (readonly [string, keyof Conditions])[] = [
  ['taskchart-after-generation', 'afterGeneration'],
  ['taskchart-if-generation-match', 'ifGenerationMatch'],
  ['taskchart-current-generation', 'currentGeneration']
]

/** On what terms a request is called, and which of the extensions that it asks for it gets. */
export type CallTerms = Required<Pick<CallContext, 'version' | 'extensions' | 'conditions'>> & { readonly activated: readonly string[] }

/** What a request's service parameters (§3.2.6) say of its call. Those of a connection's handshake are the `defaults`; `supported` are the runtime's extensions. */
export function callTerms(
  parameters: ServiceParameters,
  defaults: { readonly version: string; readonly extensions: string },
  supported: readonly string[]
): CallTerms {
  const conditions: { -readonly [Name in keyof Conditions]: number } = {}
  for (const [name, condition] of CONDITIONS) {
    const value = parameters.get(name)
    if (value !== undefined) conditions[condition] = /^\d{1,15}$/.test(value) ? Number(value) : NaN
  }
  const extensions = urisIn(parameters.get('a2a-extensions') ?? defaults.extensions)
  const activated = supported.filter(uri => extensions.includes(uri))
  return { version: parameters.get('a2a-version') ?? defaults.version, extensions, conditions, activated }
}

function urisIn(list: string): string[] {
  return list === '' ? [] : list.split(',').map(uri => uri.trim()).filter(uri => uri !== '')
}

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
