import type { CallContext, Conditions } from '../../runtime/call.ts'
import type { ServiceParameters } from './envelope.ts'

/** The service parameters of the reliability extension, and the conditions that they set. */
const CONDITIONS: readonly (readonly [string, keyof Conditions])[] = [
  ['taskchart-after-generation', 'afterGeneration'],
  ['taskchart-if-generation-match', 'ifGenerationMatch'],
  ['taskchart-current-generation', 'currentGeneration']
]

/** What a request's service parameters (§3.2.6) say of its call. Those of a connection's handshake are the `defaults`. */
export function callTerms(
  parameters: ServiceParameters,
  defaults: { readonly version: string; readonly extensions: string }
): Required<Pick<CallContext, 'version' | 'extensions' | 'conditions'>> {
  const conditions = CONDITIONS.flatMap(([name, condition]) => {
    const value = parameters.get(name)
    return value === undefined ? [] : [[condition, /^\d{1,15}$/.test(value) ? Number(value) : NaN]]
  })
  return {
    version: parameters.get('a2a-version') ?? defaults.version,
    extensions: urisIn(parameters.get('a2a-extensions') ?? defaults.extensions),
    conditions: Object.fromEntries(conditions)
  }
}

function urisIn(list: string): string[] {
  return list.split(',').map(uri => uri.trim()).filter(uri => uri !== '')
}
