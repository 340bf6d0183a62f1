import { AgentCardSchema, type AgentCard } from '../../machines/protocol/card.ts'
import { decode } from '../../machines/protocol/decode.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { AGENT_CARD_PATH, WEBSOCKET_BINDING } from '../../machines/protocol/uris.ts'
import { PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'

/** Names under which older cards list a WebSocket binding. */
const ALIASES = ['WEBSOCKET']

/** The WebSocket address of an agent: the one given, or the first that its card lists (§8.3.2). */
export async function agentUrl(url: string, signal?: AbortSignal): Promise<string> {
  const { protocol } = parsed(url)
  if (protocol === 'ws:' || protocol === 'wss:') return url
  const { supportedInterfaces } = await fetchCard(url, signal)
  const found = supportedInterfaces.find(
    ({ protocolBinding, protocolVersion }) =>
      (protocolBinding === WEBSOCKET_BINDING || ALIASES.includes(protocolBinding.toUpperCase())) && protocolVersion === PROTOCOL_VERSION
  )
  if (found) return found.url
  const offered = supportedInterfaces.map(({ protocolBinding, protocolVersion }) => `${protocolBinding} ${protocolVersion}`).join(', ')
  throw new A2AError('UnsupportedOperation', `The agent at ${url} offers no WebSocket for A2A ${PROTOCOL_VERSION}, only ${offered}.`)
}

/** Reads an agent's card. `url` is the card's own address, or that of the agent's host (§8.2). */
export async function fetchCard(url: string, signal?: AbortSignal): Promise<AgentCard> {
  const address = cardAddress(parsed(url))
  const response = await fetch(address, { headers: { accept: 'application/json' }, ...(signal && { signal }) }).catch(cause => {
    signal?.throwIfAborted()
    throw new A2AError('Overloaded', `Nobody answers at ${address.href}. Is the agent running?`, { cause })
  })
  if (!response.ok) throw new A2AError('UnsupportedOperation', `There is no agent card at ${address.href}: HTTP ${response.status}.`)
  const card: unknown = await response.json().catch(cause => {
    signal?.throwIfAborted()
    throw new A2AError('InvalidAgentResponse', `What is at ${address.href} is not JSON.`, { cause })
  })
  return decode(AgentCardSchema, card, 'card')
}

function cardAddress(url: URL): URL {
  if (url.protocol === 'ws:' || url.protocol === 'wss:') url.protocol = url.protocol.replace('ws', 'http')
  return url.pathname.endsWith('.json') ? url : new URL(AGENT_CARD_PATH, url)
}

function parsed(url: string): URL {
  const address = URL.canParse(url) ? new URL(url) : undefined
  if (address && /^(?:ws|http)s?:$/.test(address.protocol)) return address
  throw new TypeError(`${JSON.stringify(url)} is not the address of an agent. Give a ws: address, or the http: address of its card.`)
}
