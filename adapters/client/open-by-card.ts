import type { AgentCard } from '../../machines/protocol/card.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import type { Calls } from './calls.ts'
import type { Binding } from './card/bindings.ts'
import { fetchCard } from './card/discovery.ts'
import { offersOf, type Offer } from './card/interfaces.ts'
import { originRefusal } from './hosts.ts'
import { OPENERS, type Opener, type Openers } from './openers.ts'
import type { ConnectOptions } from './options.ts'

/** An agent that was connected to as its card says. */
export interface OpenByCard {
  readonly calls: Calls
  readonly binding: Binding
  /** The tenant that the card requires in every request; `undefined` if it names none. */
  readonly tenant: string | undefined
  readonly name: string
}

/** Fetches the card, and opens its first interface that this client supports and may use. Throws as documented at `connect`. */
export async function openByCard(url: string, options: ConnectOptions, wanted?: readonly Binding[], openers = OPENERS): Promise<OpenByCard> {
  const card = await fetchCard(url, options)
  let failure: A2AError | undefined
  for (const offer of offersOf(card, url, wanted)) {
    const { binding, version, url: address, tenant } = offer
    const refusal = originRefusal(url, address, options)
    failure ??= refusal
    if (refusal) continue
    const opener = openers[version][binding]
    const open = opener ? await opener.load().catch(cause => missing(url, binding, opener, cause)) : onlyInNode(url, offer, openers)
    options.signal?.throwIfAborted()
    if (!(open instanceof A2AError)) return { calls: await open(address, options, isReliable(card)), binding, tenant, name: card.name }
    failure ??= open
  }
  throw failure
}

function missing(url: string, binding: Binding, { peers = '' }: Opener, cause: unknown): A2AError {
  return new A2AError('UnsupportedOperation', `The agent at ${url} speaks ${binding}, for which a package is missing. Install it: npm install ${peers}`, { cause })
}

function onlyInNode(url: string, { binding, version }: Offer, openers: Openers): A2AError {
  const spoken = Object.keys(openers[version]).join(' and ')
  return new A2AError('UnsupportedOperation', `The agent at ${url} speaks ${binding} ${version}, which this client speaks only in Node. In browsers it speaks ${spoken}.`)
}

function isReliable({ capabilities: { extensions = [] } }: AgentCard): boolean {
  return extensions.some(({ uri }) => uri === RELIABILITY_EXTENSION)
}
