import { AgentExtensionSchema, type AgentExtension } from '../../machines/protocol/card.ts'
import { tryDecode } from '../../machines/protocol/codec/decode.ts'
import { toJson } from '../../machines/protocol/codec/json.ts'
import { A2AError, violationsText } from '../../machines/protocol/errors.ts'
import { INPUT_EXTENSION, NEGOTIATION_EXTENSION, RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import { jsonLoss } from '../primitives/json.ts'
import { rejectUnknown } from '../primitives/options.ts'

/** Protocol extensions that a runtime supports (§4.6), by URI. */
export interface Extensions {
  /** All that a client may activate: taskchart's and the author's. */
  readonly supported: readonly string[]
  /** Whether the reliability extension is among them. */
  readonly reliability: boolean
  /** Those of the author. */
  readonly own: readonly string[]
  /** Those of the author that every client has to declare. */
  readonly required: readonly string[]
}

/** Extensions that taskchart declares itself, so no author may. */
const OURS: readonly string[] = [RELIABILITY_EXTENSION, NEGOTIATION_EXTENSION, INPUT_EXTENSION]

/** A shared empty list. */
export const NO_EXTENSIONS: readonly string[] = []

/** Extensions of a runtime whose agent declares these. `ours`: those that taskchart adds. */
export function extensionsWith(
  declared: readonly AgentExtension[],
  ours: readonly string[] = [RELIABILITY_EXTENSION]
): Extensions {
  const own = declared.map(({ uri }) => uri)
  const required = declared.filter(({ required }) => required).map(({ uri }) => uri)
  return { supported: [...ours, ...own], reliability: ours.includes(RELIABILITY_EXTENSION), own, required }
}

/** Extensions of a runtime whose agent declares none. */
export const OWN_EXTENSIONS = extensionsWith([])

/**
 * The author's extensions that a client has activated. Throws ExtensionSupportRequired if a required one is missing.
 */
export function activatedOf(
  { own, required }: Extensions,
  requested: readonly string[] = NO_EXTENSIONS
): readonly string[] {
  if (own.length === 0) return NO_EXTENSIONS
  const missing = required.filter(uri => !requested.includes(uri))
  if (missing.length === 0) return own.filter(uri => requested.includes(uri))
  const uris = missing.join(',')
  throw new A2AError(
    'ExtensionSupportRequired',
    `This agent can be used only with ${missing.join(' and ')}. Send A2A-Extensions: ${uris}, if you support that.`,
    {
      metadata: { requiredExtensions: uris }
    }
  )
}

/** Validates the extensions that an author declares. Throws TypeError that names the invalid one. */
export function declaredExtensions(given: readonly AgentExtension[]): readonly AgentExtension[] {
  if (!Array.isArray(given))
    throw new TypeError("extensions has to be a list: [{ uri: 'https://example.com/ext/v1' }].")
  const extensions = given.map((extension, i) => declared(extension, `extensions[${i}]`))
  const twice = extensions.find(({ uri }, i) => extensions.findIndex(other => other.uri === uri) < i)
  if (twice) throw new TypeError(`extensions names ${twice.uri} twice.`)
  return extensions
}

const EXTENSION = Object.keys({ uri: true, description: true, required: true, params: true } satisfies Record<
  keyof AgentExtension,
  true
>)

function declared(given: unknown, name: string): AgentExtension {
  const { value, violations } = tryDecode(AgentExtensionSchema, given, name)
  if (violations) throw new TypeError(violationsText(violations))
  rejectUnknown(given as object, EXTENSION, name)
  const { uri, params } = value
  // URIs are sent in a header, separated by commas.
  if (!/^[\x21-\x2b\x2d-\x7e]+$/.test(uri))
    throw new TypeError(`${name}.uri must be a URI without spaces and commas, not ${JSON.stringify(uri)}.`)
  if (OURS.includes(uri))
    throw new TypeError(
      `${name}.uri is one of taskchart's own extensions, which taskchart declares itself. Leave it out.`
    )
  return { ...value, ...(params && { params: plain(params, name) }) }
}

function plain(params: Record<string, unknown>, name: string): Record<string, unknown> {
  const loss = jsonLoss(params, `${name}.params`, 'sent')
  if (loss !== undefined) throw new TypeError(loss)
  return toJson(params) as Record<string, unknown>
}
