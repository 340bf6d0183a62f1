import type { AgentCard, AgentInterface } from '../../../machines/protocol/card.ts'
import { A2AError } from '../../../machines/protocol/errors.ts'
import { WEBSOCKET_BINDING } from '../../../machines/protocol/uris.ts'
import { normaliseVersion, PROTOCOL_VERSION } from '../../../machines/protocol/versions.ts'

/** The bindings of this client, by their names in cards. A card may also name the WebSocket binding by its URI. */
export const BINDINGS = ['WEBSOCKET', 'JSONRPC', 'HTTP+JSON', 'GRPC'] as const

export type Binding = (typeof BINDINGS)[number]

/** The binding for a name or URI, in any case; `undefined` for one that this client does not support. */
export function bindingNamed(name: string): Binding | undefined {
  if (name === WEBSOCKET_BINDING) return 'WEBSOCKET'
  return BINDINGS.find(binding => binding === name.toUpperCase())
}

/** Validates the option `bindings`. Throws TypeError for an unknown binding and for an empty list. */
export function readBindings(names: readonly string[] | undefined): readonly Binding[] | undefined {
  if (names?.length === 0) throw new TypeError('bindings has to name at least one binding. Leave it out to use any.')
  return names?.map(name => {
    const binding = bindingNamed(name)
    if (binding) return binding
    throw new TypeError(`${JSON.stringify(name)} is not a binding of this client. Use ${BINDINGS.join(', ')}.`)
  })
}

/** The versions of A2A that this client supports, the newest first. */
const VERSIONS = [PROTOCOL_VERSION, '0.3'] as const

/** One interface of an agent that this client can use. Over WebSocket it supports only 1.0. */
export type UsableInterface = (
  | { readonly version: '1.0'; readonly binding: Binding }
  | { readonly version: '0.3'; readonly binding: Exclude<Binding, 'WEBSOCKET'> }
) & {
  readonly url: string
  /** The tenant that the card requires in every request; `undefined` if it names none. */
  readonly tenant: string | undefined
}

/**
 * The interfaces of a card that this client supports, the preferred one first (§8.3.2). A2A 1.0 precedes 0.3. Within a
 * version the order is that of `wanted`, if given, else of the card. Throws UnsupportedOperation if there is none, and
 * lists what the card offers. `url` is the URL of the card.
 */
export function offersOf(
  { supportedInterfaces }: AgentCard,
  url: string,
  wanted?: readonly Binding[]
): readonly [UsableInterface, ...UsableInterface[]] {
  if (!supportedInterfaces.some(offered => versionOf(offered)))
    throw onlyOlder(
      url,
      [...new Set(supportedInterfaces.map(({ protocolVersion }) => protocolVersion))].join(', '),
      VERSIONS
    )
  const spoken = wanted ?? BINDINGS
  const offers = supportedInterfaces.flatMap((offered): UsableInterface[] => {
    const { protocolBinding, url, tenant } = offered
    const [binding, version] = [bindingNamed(protocolBinding), versionOf(offered)]
    if (!binding || !version || !spoken.includes(binding)) return []
    if (version === PROTOCOL_VERSION) return [{ binding, version, url, tenant }]
    return binding === 'WEBSOCKET' ? [] : [{ binding, version, url, tenant }]
  })
  const place = ({ version, binding }: UsableInterface) =>
    VERSIONS.indexOf(version) * spoken.length + (wanted ? spoken.indexOf(binding) : 0)
  const [first, ...others] = offers.toSorted((a, b) => place(a) - place(b))
  if (!first) throw noneOf(spoken, supportedInterfaces, url)
  return [first, ...others]
}

/** The error for an agent that supports none of this client's versions. */
export function onlyOlder(url: string, versions: string, spoken: readonly string[]): A2AError {
  return new A2AError(
    'UnsupportedOperation',
    `The agent at ${url} speaks only A2A ${versions}; this client speaks ${spoken.join(' and ')}.`
  )
}

function versionOf({ protocolVersion }: AgentInterface): UsableInterface['version'] | undefined {
  const version = normaliseVersion(protocolVersion)
  return VERSIONS.find(known => known === version)
}

function noneOf(spoken: readonly Binding[], offered: readonly AgentInterface[], url: string): A2AError {
  const names = offered
    .map(({ protocolBinding, protocolVersion }) => `${protocolBinding} ${protocolVersion}`)
    .join(', ')
  return new A2AError(
    'UnsupportedOperation',
    `The agent at ${url} offers no ${spoken.join(' or ')} that this client speaks (A2A 1.0; 0.3, but not over WebSocket), only ${names}.`
  )
}
