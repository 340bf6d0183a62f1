import { AgentCardSchema, type AgentCard } from '../../machines/protocol/card.ts'
import { decode } from '../../machines/protocol/decode.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { isObject } from '../../machines/protocol/json.ts'
import { AGENT_CARD_PATH } from '../../machines/protocol/uris.ts'
import { discard, wholeBody } from './body.ts'
import { passingError } from './http-errors.ts'
import { onlyOlder } from './interfaces.ts'
import { nobodyAnswers } from './lost-errors.ts'
import type { ConnectOptions } from './options.ts'

/**
 * Reads an agent's card. `url` is the card's own address, or that of the agent: then the card is looked for below that
 * path, and at the root of its host (§8.2). Throws UnsupportedOperation where there is none and for agents of A2A 0.3,
 * InvalidAgentResponse for what is not JSON, InvalidParams for what is no card, and what `verifyCard`
 * does. Overloaded and RateLimited say that the card may be there later.
 */
export async function fetchCard(url: string, { signal, verifyCard }: Pick<ConnectOptions, 'signal' | 'verifyCard'> = {}): Promise<AgentCard> {
  const found = await foundCard(url, signal)
  const card = verifyCard ? await verifyCard(found, url) : decode(AgentCardSchema, found, 'card')
  signal?.throwIfAborted()
  return card
}

/** The JSON that is at the place of an agent's card, not looked into but for its version. Throws as `fetchCard` does. */
export async function foundCard(url: string, signal: AbortSignal | undefined): Promise<unknown> {
  const [first, root] = cardAddresses(url)
  const found = await documentAt(first, signal)
  if (!(found instanceof A2AError)) return current(found, url)
  if (!root) throw found
  const other = await documentAt(root, signal)
  if (!(other instanceof A2AError)) return current(other, url)
  throw new A2AError(other.code, `${found.message} ${other.message}`, { cause: other })
}

/** Says that a URL is the address of a WebSocket. Throws TypeError for what is no address of an agent. */
export function isSocketAddress(url: string): boolean {
  return parsed(url).protocol.startsWith('ws')
}

/** The JSON that is at an address, or why there is none. */
async function documentAt({ href }: URL, signal: AbortSignal | undefined): Promise<unknown> {
  const response = await fetch(href, { headers: { accept: 'application/json' }, ...(signal && { signal }) }).catch(cause => {
    signal?.throwIfAborted()
    throw nobodyAnswers(href, cause)
  })
  if (!response.ok) {
    discard(response)
    const passing = passingError(response)
    if (passing) throw passing
    return new A2AError('UnsupportedOperation', `There is no agent card at ${href}: HTTP ${response.status}.`)
  }
  const body = await wholeBody(response).catch(cause => {
    signal?.throwIfAborted()
    return new A2AError('InvalidAgentResponse', `What is at ${href} could not be read to its end.`, { cause })
  })
  if (body instanceof A2AError) return body
  try {
    return JSON.parse(body) as unknown
  } catch (cause) {
    return new A2AError('InvalidAgentResponse', `What is at ${href} is not JSON.`, { cause })
  }
}

/** Cards of 0.3 have the one interface, and its version, in the card itself. */
function current(found: unknown, url: string): unknown {
  if (isObject(found) && found.supportedInterfaces === undefined && typeof found.protocolVersion === 'string') throw onlyOlder(url, found.protocolVersion)
  return found
}

/** Where the card may be (§8.2): at its own address, or below the agent's path and then at the root of its host. Throws TypeError for what is no address. */
export function cardAddresses(text: string): readonly [URL, URL?] {
  const url = httpAddress(text)
  if (url.pathname.endsWith('.json')) return [url]
  const root = new URL(AGENT_CARD_PATH, url)
  const path = url.pathname.replace(/\/+$/, '')
  if (path === '') return [root]
  const below = new URL(root)
  below.pathname = `${path}${AGENT_CARD_PATH}`
  return [below, root]
}

function httpAddress(url: string): URL {
  const address = parsed(url)
  address.protocol = address.protocol.replace('ws', 'http')
  return address
}

function parsed(url: string): URL {
  const address = URL.canParse(url) ? new URL(url) : undefined
  if (address && /^(?:ws|http)s?:$/.test(address.protocol)) return address
  throw new TypeError(`${JSON.stringify(url)} is not the address of an agent. Give a ws: address, or the http: address of its card.`)
}
