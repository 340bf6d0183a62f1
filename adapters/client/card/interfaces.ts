import type { AgentCard, AgentInterface } from '../../../machines/protocol/card.ts'
import { A2AError } from '../../../machines/protocol/errors.ts'
import { normaliseVersion, PROTOCOL_VERSION } from '../../../machines/protocol/versions.ts'
import { inBrowser } from '../in-browser.ts'
import { BINDINGS, bindingNamed, type Binding } from './bindings.ts'

/** The versions of A2A that this client speaks, the newest first. */
const VERSIONS = [PROTOCOL_VERSION, '0.3'] as const

/** One way in which this client can speak to an agent. Over WebSocket it speaks 1.0 alone. */
export type Offer = ({ readonly version: '1.0'; readonly binding: Binding } | { readonly version: '0.3'; readonly binding: Exclude<Binding, 'WEBSOCKET'> }) & {
  readonly url: string
  /** What the card says that every request has to name; `undefined` if it says nothing. */
  readonly tenant: string | undefined
}

/**
 * The interfaces of a card that this client can speak to, the one to prefer first (§8.3.2). Those of A2A 1.0 come before those of 0.3.
 * Within a version they have the order of `wanted`, if that is given, then of the card. 0.3 is not spoken over WebSocket. Throws
 * UnsupportedOperation if there is none, and says what the card offers. `url` is where the card was asked for.
 */
export function offersOf({ supportedInterfaces }: AgentCard, url: string, wanted?: readonly Binding[]): readonly [Offer, ...Offer[]] {
  if (!supportedInterfaces.some(offered => versionOf(offered))) throw onlyOlder(url, [...new Set(supportedInterfaces.map(({ protocolVersion }) => protocolVersion))].join(', '), VERSIONS)
  const spoken = (wanted ?? BINDINGS).filter(binding => binding !== 'GRPC' || !inBrowser())
  const offers = supportedInterfaces.flatMap((offered): Offer[] => {
    const { protocolBinding, url, tenant } = offered
    const [binding, version] = [bindingNamed(protocolBinding), versionOf(offered)]
    if (!binding || !version || !spoken.includes(binding)) return []
    if (version === PROTOCOL_VERSION) return [{ binding, version, url, tenant }]
    return binding === 'WEBSOCKET' ? [] : [{ binding, version, url, tenant }]
  })
  const place = ({ version, binding }: Offer) => VERSIONS.indexOf(version) * spoken.length + (wanted ? spoken.indexOf(binding) : 0)
  const [first, ...others] = offers.toSorted((a, b) => place(a) - place(b))
  if (!first) throw noneOf(spoken, supportedInterfaces, url)
  return [first, ...others]
}

/** The error for an agent that speaks none of these versions. */
export function onlyOlder(url: string, versions: string, spoken: readonly string[]): A2AError {
  return new A2AError('UnsupportedOperation', `The agent at ${url} speaks only A2A ${versions}; this client speaks ${spoken.join(' and ')}.`)
}

function versionOf({ protocolVersion }: AgentInterface): Offer['version'] | undefined {
  const version = normaliseVersion(protocolVersion)
  return VERSIONS.find(known => known === version)
}

function noneOf(spoken: readonly Binding[], offered: readonly AgentInterface[], url: string): A2AError {
  const names = offered.map(({ protocolBinding, protocolVersion }) => `${protocolBinding} ${protocolVersion}`).join(', ')
  return new A2AError('UnsupportedOperation', `The agent at ${url} offers no ${spoken.join(' or ')} that this client speaks (A2A 1.0; 0.3, but not over WebSocket), only ${names}.`)
}
