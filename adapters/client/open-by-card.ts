import type { AgentCard } from '../../machines/protocol/card.ts'
import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import type { Calls } from './calls.ts'
import type { Binding } from './card/bindings.ts'
import { fetchCard } from './card/discovery.ts'
import { offersOf, type Offer } from './card/interfaces.ts'
import { explainRefusal, placesIn } from './credentials.ts'
import { mayReceive, originRefusal } from './hosts.ts'
import { OPENERS, type Opener, type Openers } from './openers.ts'
import { hasHeaders, type ConnectOptions, type PlacedOptions } from './options.ts'

/** An agent that was connected to as its card says. */
export interface OpenByCard {
  readonly calls: Calls
  readonly binding: Binding
  /** The tenant that the card requires in every request; `undefined` if it names none. */
  readonly tenant: string | undefined
  readonly name: string
  /** Whether the agent streams. A card that does not say so says no. */
  readonly streams: boolean
  /** The options, with the places of the credentials. */
  readonly options: PlacedOptions
}

/** Fetches the card, and opens its first interface that this client supports and may use. Throws as documented at `connect`. */
export async function openByCard(url: string, options: ConnectOptions, wanted?: readonly Binding[], openers = OPENERS): Promise<OpenByCard> {
  const card = await fetchCard(url, options)
  const places = placesIn(card, options.credentials)
  let failure: A2AError | undefined
  for (const offer of receiversFirst(offersOf(card, url, wanted), url, places.length > 0, options)) {
    const { binding, version, url: address, tenant } = offer
    const refusal = originRefusal(url, address, options)
    failure ??= refusal
    if (refusal) continue
    const placed = { ...options, places: mayReceive(url, address, options) ? places : [] }
    const opener = openers[version][binding]
    const open = opener ? (lackOf(url, binding, opener.lacks, placed) ?? (await opener.load().catch(cause => missing(url, binding, opener, cause)))) : onlyInNode(url, offer, openers)
    options.signal?.throwIfAborted()
    if (open instanceof A2AError) {
      failure ??= open
      continue
    }
    const calls = await open(address, placed, isReliable(card)).catch(error => {
      throw explainRefusal(error, placed)
    })
    return { calls, binding, tenant, name: card.name, streams: card.capabilities.streaming === true, options: placed }
  }
  throw failure
}

/** Options for a connection to a `ws:` URL, with the places that the card of its host names. Without a readable card, there is no scheme. */
export async function placedForSocket(url: string, options: ConnectOptions): Promise<PlacedOptions> {
  const card = await fetchCard(url, options).catch(error => {
    if (isA2AError(error)) return {}
    throw error
  })
  return { ...options, places: placesIn(card, options.credentials) }
}

/** The interfaces that may receive the credentials come first, if there are some to send. */
function receiversFirst(offers: readonly Offer[], url: string, isToSend: boolean, options: ConnectOptions): readonly Offer[] {
  if (!isToSend) return offers
  const rank = ({ url: address }: Offer) => (mayReceive(url, address, options) ? 0 : 1)
  return offers.toSorted((a, b) => rank(a) - rank(b))
}

/** The error for credentials that a binding cannot carry; `undefined` if it can. */
export function lackOf(url: string, binding: Binding, lacks: Opener['lacks'] = {}, placed: Required<Pick<PlacedOptions, 'places'>> & ConnectOptions): A2AError | undefined {
  const carriers = [...(hasHeaders(placed) ? ['header' as const] : []), ...placed.places.map(({ carrier }) => carrier)]
  const lack = carriers.map(carrier => lacks[carrier]).find(text => text !== undefined)
  if (lack === undefined) return undefined
  return new A2AError('UnsupportedOperation', `The agent at ${url} speaks ${binding}, over which this client cannot send ${lack}.`)
}

function missing(url: string, binding: Binding, { peers = '' }: Opener, cause: unknown): A2AError {
  return new A2AError('UnsupportedOperation', `The agent at ${url} speaks ${binding}, for which a package is missing. Install it: npm install ${peers}`, { cause })
}

function onlyInNode(url: string, { binding, version }: Offer, openers: Openers): A2AError {
  const spoken = Object.keys(openers[version]).join(', ')
  return new A2AError('UnsupportedOperation', `The agent at ${url} speaks ${binding} ${version}, which this client speaks only in Node. In browsers it speaks ${spoken}.`)
}

function isReliable({ capabilities: { extensions = [] } }: AgentCard): boolean {
  return extensions.some(({ uri }) => uri === RELIABILITY_EXTENSION)
}
