import type { AgentCard, AgentInterface } from '../../machines/protocol/card.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { normaliseVersion, PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import { BINDINGS, bindingNamed, type Binding } from './bindings.ts'
import { inBrowser } from './in-browser.ts'

/** One way in which this client can speak to an agent. */
export interface Offer {
  readonly binding: Binding
  readonly url: string
  /** What the card says that every request has to name; `undefined` if it says nothing. */
  readonly tenant: string | undefined
}

/**
 * The interfaces of a card that this client can speak to, the one to prefer first (§8.3.2): in the order of `wanted`, if
 * that is given, then of the card. Throws UnsupportedOperation if there is none, and says what the card offers. `url` is
 * where the card was asked for.
 */
export function offersOf({ supportedInterfaces }: AgentCard, url: string, wanted?: readonly Binding[]): readonly [Offer, ...Offer[]] {
  if (!supportedInterfaces.some(isCurrent)) throw onlyOlder(url, [...new Set(supportedInterfaces.map(({ protocolVersion }) => protocolVersion))].join(', '))
  const spoken = (wanted ?? BINDINGS).filter(binding => binding !== 'GRPC' || !inBrowser())
  const offers = supportedInterfaces.filter(isCurrent).flatMap(({ protocolBinding, url, tenant }) => {
    const binding = bindingNamed(protocolBinding)
    return binding && spoken.includes(binding) ? [{ binding, url, tenant }] : []
  })
  const [first, ...others] = wanted ? offers.toSorted((a, b) => spoken.indexOf(a.binding) - spoken.indexOf(b.binding)) : offers
  if (!first) throw noneOf(spoken, supportedInterfaces, url)
  return [first, ...others]
}

/** What to say of an agent that speaks no version of this client's: there is no fallback. */
export function onlyOlder(url: string, versions: string): A2AError {
  return new A2AError('UnsupportedOperation', `The agent at ${url} speaks only A2A ${versions}; this client speaks ${PROTOCOL_VERSION}.`)
}

function isCurrent({ protocolVersion }: AgentInterface): boolean {
  return normaliseVersion(protocolVersion) === PROTOCOL_VERSION
}

function noneOf(spoken: readonly Binding[], offered: readonly AgentInterface[], url: string): A2AError {
  const names = offered.map(({ protocolBinding, protocolVersion }) => `${protocolBinding} ${protocolVersion}`).join(', ')
  return new A2AError('UnsupportedOperation', `The agent at ${url} offers no ${spoken.join(' or ')} for A2A ${PROTOCOL_VERSION}, only ${names}.`)
}
