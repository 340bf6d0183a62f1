import { AgentCardSchema } from '../../../machines/protocol/card.ts'
import { tryDecode } from '../../../machines/protocol/codec/decode.ts'
import { A2AError } from '../../../machines/protocol/errors.ts'
import { AGENT_CARD_PATH } from '../../../machines/protocol/uris.ts'
import type { Binding } from '../../client/card/bindings.ts'
import { cardAddresses, cardError, noneAt } from '../../client/card/discovery.ts'
import { afterRefusal } from '../../client/credentials.ts'
import { currentHeaders, type ConnectOptions, type PlacedOptions } from '../../client/options.ts'
import { ConnectionLost, nobodyAnswers } from '../../client/retries/lost-errors.ts'
import { discard } from '../../client/transports/body.ts'
import { sendRequest } from '../../client/transports/http.ts'
import { WireRefusal } from '../callers/caller.ts'
import { exchange } from '../callers/exchange.ts'
import type { Ledger } from './ledger.ts'
import { objectMembersOf, itemsOf, offeredIn } from './needs.ts'

/** A fetched, unvalidated card. */
export interface FoundCard {
  readonly url: URL
  readonly card: unknown
  readonly headers: Headers
  /** The status of a conditional request with its ETag or date; `undefined` without either. */
  readonly again: number | undefined
}

/** The identity of the caller, for a card that is refused without. */
type CardAccess = Pick<ConnectOptions, 'headers' | 'credentials'>

/**
 * Fetches the card of an agent, without following redirects. Throws TypeError for an invalid URL, Overloaded if the
 * agent is unreachable, UnsupportedOperation if there is no card, Unauthenticated or Forbidden if it is refused,
 * InvalidAgentResponse for invalid JSON.
 */
export async function cardAt(url: string, access: CardAccess, signal: AbortSignal): Promise<FoundCard> {
  const [first, root] = cardAddresses(url)
  const found = await documentAt(first, access, signal)
  if (!(found instanceof A2AError)) return found
  if (!root) throw found
  const other = await documentAt(root, access, signal)
  if (!(other instanceof A2AError)) return other
  throw noneAt(found, other)
}

async function documentAt(url: URL, access: CardAccess, signal: AbortSignal): Promise<FoundCard | A2AError> {
  let used: PlacedOptions = {}
  const ask = async (href: string, init: RequestInit) => {
    const response = await sendRequest(href, init)
    const again = afterRefusal(response, access)
    if (!again) return response
    used = again
    discard(response)
    return sendRequest(href, { ...init, headers: { ...currentHeaders(used), accept: 'application/json' } })
  }
  try {
    const { response, json } = await exchange(url.href, { headers: { accept: 'application/json' }, signal }, {}, ask)
    if (!response.ok) return cardError(url.href, response.status, used)
    return { url, card: json, headers: response.headers, again: await statusAgain(url, response.headers, used, signal) }
  } catch (error) {
    if (error instanceof WireRefusal) return cardError(url.href, Number(error.native), used)
    if (error instanceof ConnectionLost || signal.aborted) throw nobodyAnswers(url.href, error)
    throw error
  }
}

async function statusAgain(
  { href }: URL,
  headers: Headers,
  used: PlacedOptions,
  signal: AbortSignal
): Promise<number | undefined> {
  const [etag, date] = [headers.get('etag'), headers.get('last-modified')]
  if (etag === null && date === null) return undefined
  const known: Record<string, string> =
    etag === null ? { 'if-modified-since': String(date) } : { 'if-none-match': etag }
  // Without its own Cache-Control, fetch would bypass caches.
  const response = await fetch(href, {
    headers: { ...currentHeaders(used), accept: 'application/json', 'cache-control': 'max-age=0', ...known },
    redirect: 'manual',
    signal
  })
  discard(response)
  return response.status
}

/** Records findings about the card (§8). */
export function noteCard({ url, card, headers, again }: FoundCard, ledger: Ledger, binding: Binding): void {
  const check = (id: number, isMet: boolean, wanted: string, found: unknown) =>
    isMet
      ? ledger.meets(id)
      : ledger.misses(id, { sent: `GET ${url.href}`, wanted, found: JSON.stringify(found) }, true)
  if (url.pathname.endsWith(AGENT_CARD_PATH)) ledger.meets(116)
  const { violations = [] } = tryDecode(AgentCardSchema, card, 'card')
  check(117, violations.length === 0, 'the required fields', violations)
  const own = offeredIn(card).interfaces
  const listed = itemsOf(objectMembersOf(card).supportedInterfaces)
  check(118, own.length === listed.length, 'url, protocolBinding and protocolVersion of each interface', listed)
  check(
    120,
    /max-age=\d+/.test(headers.get('cache-control') ?? ''),
    'Cache-Control with max-age',
    headers.get('cache-control')
  )
  check(
    120,
    again === 304,
    'ETag or Last-Modified, and 304 for who has the card',
    again ?? 'neither ETag nor Last-Modified'
  )
  if (binding === 'WEBSOCKET')
    check(
      150,
      own.some(({ protocolBinding }) => URL.canParse(protocolBinding)),
      'the binding named by a URI',
      own
    )
  check(
    107,
    own.every(({ protocolVersion }) => /^\d+\.\d+$/.test(protocolVersion)),
    'versions without patch numbers',
    own
  )
}
