import type { CallContext, Conditions } from '../../runtime/access/call-context.ts'
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
