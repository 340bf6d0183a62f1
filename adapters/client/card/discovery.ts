import type { AgentCard } from '../../../machines/protocol/card.ts'
import { isObject, checkJson } from '../../../machines/protocol/codec/json.ts'
import { A2AError, isA2AError } from '../../../machines/protocol/errors.ts'
import { AGENT_CARD_PATH } from '../../../machines/protocol/uris.ts'
import { systemClock } from '../../../runtime/ports/clock.ts'
import { trimmedEnd } from '../../../runtime/primitives/authority.ts'
import { afterRefusal, explainRefusal } from '../credentials.ts'
import { agentAddress } from '../hosts.ts'
import { currentHeaders, type ConnectOptions, type PlacedOptions } from '../options.ts'
import { nobodyAnswers, tlsHint } from '../retries/lost-errors.ts'
import { discard, passingError, wholeBody } from '../transports/body.ts'
import { type CardLimits, cardLimitsWith } from './card-limits.ts'
import { readCard } from './lenient-card.ts'

/** The maximum number of redirects for a card. All stay within one origin. */
const MOST_REDIRECTS = 5

/**
 * Fetches an agent's card. `url` is the URL of the card or of the agent. The card of an agent is looked up below that
 * path, at the root of its host (§8.2), and last at the URL itself. Headers and credentials are sent only after 401 or
 * 403. A card of A2A 0.3 is returned in the form of 1.0. Throws UnsupportedOperation if there is none, Unauthenticated
 * or Forbidden if it is refused, InvalidAgentResponse if it is not JSON or lacks what the client needs, and the errors
 * of `verifyCard`. With the option `card` none is fetched. Overloaded and RateLimited are temporary.
 */
export async function fetchCard(url: string, options: CardOptions = {}): Promise<AgentCard> {
  const { signal, verifyCard, card: known } = options
  const found = known ?? (await foundCard(url, options))
  const card = verifyCard ? await verifyCard(found, url) : await readCard(found, url)
  signal?.throwIfAborted()
  return card
}

/**
 * Reads the answer of GetExtendedAgentCard, within `cardLimits`. Throws InvalidAgentResponse, as for the public card.
 */
export async function extendedCard(answer: unknown, url: string, limits: CardLimits): Promise<AgentCard> {
  checkCardSize(answer, url, limits)
  return readCard(answer, url)
}

/** The options of `connect` that concern the card. */
export type CardOptions = Pick<
  ConnectOptions,
  'signal' | 'verifyCard' | 'card' | 'cardLimits' | 'clock' | 'headers' | 'credentials'
>

/** The unvalidated JSON of an agent's card, within `cardLimits`. Throws as `fetchCard` does. */
export async function foundCard(url: string, options: CardOptions): Promise<unknown> {
  const { signal, cardLimits, clock = systemClock } = options
  const limits = cardLimitsWith(cardLimits)
  const addresses = cardAddresses(url)
  const limit = new AbortController()
  const timer = clock.setTimeout(() => limit.abort(tooSlow(url, limits)), limits.waitMs)
  try {
    return await firstDocument(addresses, {
      ...options,
      limits,
      signal: signal ? AbortSignal.any([signal, limit.signal]) : limit.signal
    })
  } finally {
    clock.clearTimeout(timer)
  }
}

interface Reading extends Pick<CardOptions, 'headers' | 'credentials'> {
  readonly limits: CardLimits
  readonly signal: AbortSignal
}

async function firstDocument([first, root, given]: CardAddresses, reading: Reading): Promise<unknown> {
  const found = await documentAt(first, reading)
  if (!(found instanceof A2AError)) return found
  if (!root || !given) throw found
  const other = await documentAt(root, reading)
  if (!(other instanceof A2AError)) return other
  const last = await cardGiven(given, reading).catch((error: unknown) => {
    if (!isA2AError(error)) throw error
  })
  if (last) return last
  throw noneAt(found, other)
}

/**
 * The JSON at the given URL if it looks like a card: the URL may also be the agent's own, which answers with anything.
 */
async function cardGiven(given: URL, reading: Reading): Promise<object | undefined> {
  const document = await documentAt(given, reading)
  return isObject(document) && ('supportedInterfaces' in document || 'protocolVersion' in document)
    ? document
    : undefined
}

/** The error for two places without a card. A refusal matters more than a place that is empty. */
export function noneAt(found: A2AError, other: A2AError): A2AError {
  const { code } = other.code === 'UnsupportedOperation' ? found : other
  return new A2AError(code, `${found.message} ${other.message}`, { cause: other })
}

function tooSlow(url: string, { waitMs }: CardLimits): A2AError {
  return new A2AError('Overloaded', `The card at ${url} was not read within ${waitMs} ms: cardLimits.waitMs.`)
}

/** The JSON at a URL, or the error why there is none. Throws if it exceeds a limit. */
async function documentAt({ href }: URL, reading: Reading): Promise<unknown> {
  const { limits, signal } = reading
  const { response, used } = await answerFor(href, reading)
  if (response instanceof A2AError) return response
  if (!response.ok) {
    discard(response)
    const passing = passingError(response)
    if (passing) throw passing
    return cardError(href, response.status, used)
  }
  const body = await wholeBody(response, limits.bytes).catch(cause => {
    signal.throwIfAborted()
    if (isA2AError(cause)) throw cause
    return new A2AError('InvalidAgentResponse', `The response from ${href} was interrupted.`, { cause })
  })
  if (body instanceof A2AError) return body
  const found = jsonIn(body, href)
  if (!(found instanceof A2AError)) checkCardSize(found, href, limits)
  return found
}

function jsonIn(body: string, href: string): unknown {
  try {
    return JSON.parse(body) as unknown
  } catch (cause) {
    return new A2AError('InvalidAgentResponse', `The response from ${href} is not JSON.`, { cause })
  }
}

const NO_CARD = 'There is no agent card at'

/** Whether an error says that no agent card was found. */
export function isMissingCard({ code, message }: A2AError): boolean {
  return code === 'UnsupportedOperation' && message.startsWith(NO_CARD)
}

/** The error for the status of a card, and for the credentials that were sent for it. */
export function cardError(href: string, status: number, used: PlacedOptions): A2AError {
  if (status === 401)
    return explainRefusal(
      new A2AError('Unauthenticated', `The agent card at ${href} requires credentials (HTTP 401).`),
      used
    )
  if (status === 403) return new A2AError('Forbidden', `The agent card at ${href} may not be read (HTTP 403).`)
  // What servers answer to plain text on a port for TLS.
  const isOfTls = status === 400 && href.startsWith('http:')
  return new A2AError(
    'UnsupportedOperation',
    `${NO_CARD} ${href}: HTTP ${status}.${isOfTls ? ` ${tlsHint(href)}` : ''}`
  )
}

/** Requests a card without credentials, and once more with them if it is refused. */
async function answerFor(
  href: string,
  reading: Reading
): Promise<{ response: Response | A2AError; used: PlacedOptions }> {
  const response = await answerFrom(href, {}, reading.signal)
  if (response instanceof A2AError) return { response, used: {} }
  const used = afterRefusal(response, reading)
  if (!used) return { response, used: {} }
  discard(response)
  return { response: await answerFrom(href, used, reading.signal), used }
}

/** Requests a card. Redirects are followed within the origin. */
async function answerFrom(
  href: string,
  used: PlacedOptions,
  signal: AbortSignal,
  redirects = 0
): Promise<Response | A2AError> {
  const response = await fetch(href, {
    headers: { ...currentHeaders(used), accept: 'application/json' },
    redirect: 'manual',
    signal
  }).catch(cause => {
    signal.throwIfAborted()
    throw nobodyAnswers(href, cause)
  })
  const isRedirect = response.type === 'opaqueredirect' || [301, 302, 303, 307, 308].includes(response.status)
  if (!isRedirect) return response
  discard(response)
  const to = response.headers.get('location') ?? ''
  const target = URL.canParse(to, href) ? new URL(to, href) : undefined
  if (target?.origin === new URL(href).origin && redirects < MOST_REDIRECTS)
    return answerFrom(target.href, used, signal, redirects + 1)
  const place = JSON.stringify(to.slice(0, 256))
  return new A2AError(
    'InvalidAgentResponse',
    `${href} redirects to ${place}. At most ${MOST_REDIRECTS} redirects within one origin are followed: give the URL of the card itself.`
  )
}

/** Where a card may be, in the order of asking. */
type CardAddresses = readonly [URL, URL?, URL?]

/**
 * The URLs of the card (§8.2): its own if that ends in `.json`, else below the agent's path, at the root of its host,
 * and the given URL itself unless it is only an origin. Each has the query of the given URL. Throws TypeError for an
 * invalid URL.
 */
export function cardAddresses(text: string): CardAddresses {
  const url = agentAddress(text)
  url.protocol = url.protocol.replace('ws', 'http')
  url.hash = ''
  if (url.pathname.endsWith('.json')) return [url]
  const root = new URL(url)
  root.pathname = AGENT_CARD_PATH
  const path = trimmedEnd(url.pathname, '/')
  if (path === '') return [root]
  const below = new URL(root)
  below.pathname = `${path}${AGENT_CARD_PATH}`
  return [below, root, url]
}

/**
 * Checks unvalidated JSON against the limits. Throws InvalidAgentResponse for too much of it, and for too deep nesting.
 */
export function checkCardSize(card: unknown, url: string, limits: CardLimits): void {
  const {
    skills = [],
    additionalInterfaces = [],
    supportedInterfaces = additionalInterfaces
  } = isObject(card) ? card : {}
  checkCount(skills, 'skills', url, limits.skills)
  checkCount(supportedInterfaces, 'interfaces', url, limits.interfaces)
  const violation = checkJson(card, { root: 'card' })
  if (violation)
    throw new A2AError(
      'InvalidAgentResponse',
      `The card at ${url} cannot be read: ${violation.field} ${violation.description}.`,
      { violations: [violation] }
    )
  checkEach(skills, 'skill', url, limits.skillBytes)
  checkEach(supportedInterfaces, 'interface', url, limits.interfaceBytes)
}

function checkCount(list: unknown, what: 'skills' | 'interfaces', url: string, most: number): void {
  if (!Array.isArray(list) || list.length <= most) return
  throw new A2AError(
    'InvalidAgentResponse',
    `The card at ${url} has ${list.length} ${what}. At most ${most} are read: cardLimits.${what}.`
  )
}

function checkEach(list: unknown, what: 'skill' | 'interface', url: string, most: number): void {
  if (!Array.isArray(list)) return
  const encoder = new TextEncoder()
  for (const [index, one] of list.entries()) {
    const { length } = encoder.encode(JSON.stringify(one))
    if (length > most)
      throw new A2AError(
        'InvalidAgentResponse',
        `The card at ${url} is too long: ${what} number ${index + 1} has ${length} bytes. At most ${most} are read: cardLimits.${what}Bytes.`
      )
  }
}
