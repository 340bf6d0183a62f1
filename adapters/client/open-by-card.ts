import type { AgentCard, AgentInterface } from '../../machines/protocol/card.ts'
import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import { NATIVE_VERSIONS, normaliseVersion, PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import type { Calls } from './calls.ts'
import { type Binding, BINDINGS, bindingNamed, type UsableInterface } from './card/bindings.ts'
import { fetchCard } from './card/discovery.ts'
import { explainRefusal, placesIn } from './credentials.ts'
import { hasTls, isSameOrigin, mayReceive, cardUrlRefusal } from './hosts.ts'
import { OPENERS, type Opener, type Openers } from './openers.ts'
import { hasHeaders, type ConnectOptions, type PlacedOptions, type SecretPlace } from './options.ts'
import { mention, warnOf } from './warnings.ts'

/** A connection to an agent by its card. */
export interface OpenByCard {
  readonly calls: Calls
  readonly binding: Binding
  /** The tenant that the card requires in every request; `undefined` if it names none. */
  readonly tenant: string | undefined
  readonly name: string
  /** The version of A2A of the interface. */
  readonly version: string
  /** Whether the agent streams, by its card. */
  readonly streams: boolean
  /** The options, with the places of the credentials. */
  readonly options: PlacedOptions
  /** Opens another interface. `isStale`: the agent took this one before, so its card has changed, and is read again. */
  readonly next: (isStale: boolean) => Promise<OpenByCard>
}

/** An agent's card, and how it is connected to. */
interface Connecting {
  readonly url: string
  readonly card: AgentCard
  readonly options: ConnectOptions
  /** The options of later connections. */
  readonly lasting: ConnectOptions
  readonly openers: Openers
  readonly places: readonly SecretPlace[]
  /** Reads the card again, and opens its first interface but for this one. */
  readonly reopen: (refused: UsableInterface, hadTls: boolean) => Promise<OpenByCard>
}

/**
 * Fetches the card, and opens its first interface that this client supports, may use and reaches. An interface that
 * cannot be reached is skipped with a warning. After such an address with TLS none without is tried. Throws as
 * documented at `connect`.
 */
export async function openByCard(
  url: string,
  options: ConnectOptions,
  wanted?: readonly Binding[],
  openers = OPENERS
): Promise<OpenByCard> {
  const versions = readVersions(options.versions)
  // The signal is for the first connection alone.
  const { signal: _first, ...lasting } = options
  const openByCurrentCard = async (
    options: ConnectOptions,
    refused?: UsableInterface,
    hadTls = false
  ): Promise<OpenByCard> => {
    const card = await fetchCard(url, options)
    const places = placesIn(card, options.credentials)
    const offers = offersOf(card, url, wanted, versions).filter(offer => !isSame(offer, refused))
    const reopen = (refused: UsableInterface, hadTls: boolean) => openByCurrentCard(lasting, refused, hadTls)
    const connecting = { url, card, options, lasting, openers, places, reopen }
    return openFirst(receiversFirst(offers, url, places.length > 0, options), connecting, hadTls)
  }
  return openByCurrentCard(options)
}

function isSame(one: UsableInterface, other: UsableInterface | undefined): boolean {
  return one.version === other?.version && one.binding === other.binding && one.url === other.url
}

/** Opens the first of these interfaces that can be used. `hadTls`: one before them had TLS. */
async function openFirst(
  offers: readonly UsableInterface[],
  connecting: Connecting,
  hadTls = false
): Promise<OpenByCard> {
  const { url, options, lasting, reopen } = connecting
  const skipped: Skipped[] = []
  for (const [index, offer] of offers.entries()) {
    const isLast = offer === offers.at(-1)
    const opened: OpenedInterface | Skipped =
      hadTls && !hasTls(offer.url) ? { why: withoutTls(url, offer) } : await openOffer(offer, connecting, isLast)
    options.signal?.throwIfAborted()
    if ('calls' in opened) {
      for (const {
        why: { message },
        isOdd
      } of skipped)
        (isOdd ? warnOf(url) : mention)(`${message} The interface was skipped.`)
      const hasHadTls = hadTls || NAMES_TLS.test(offer.url)
      return {
        ...opened,
        next: async isStale =>
          isStale
            ? reopen(offer, hasHadTls)
            : openFirst(offers.slice(index + 1), { ...connecting, options: lasting }, hasHadTls)
      }
    }
    hadTls ||= opened.isOdd === true && NAMES_TLS.test(offer.url)
    skipped.push(opened)
  }
  throw (skipped.find(({ isOdd }) => isOdd) ?? skipped[0])?.why ?? noOther(url)
}

function noOther(url: string): A2AError {
  return new A2AError('UnsupportedOperation', `The card at ${url} offers nothing else that this client speaks.`)
}

/** An address that names TLS. One of gRPC without a scheme has it by default only. */
const NAMES_TLS = /^(?:https|wss|grpcs):/i

type OpenedInterface = Omit<OpenByCard, 'next'>

/** Why an interface is skipped. `isOdd`: not because of this client, but of the agent. */
interface Skipped {
  readonly why: A2AError
  readonly isOdd?: true
}

/**
 * Opens an interface. Resolves with the reason if another may be used instead, since nothing was sent that the agent
 * could process.
 */
async function openOffer(
  offer: UsableInterface,
  { url, card, options, openers, places }: Connecting,
  isLast: boolean
): Promise<OpenedInterface | Skipped> {
  const { binding, version, url: address, tenant } = offer
  try {
    const refusal = cardUrlRefusal(url, address, options)
    if (refusal) return { why: refusal }
    const placedOptions = {
      ...options,
      version: version === '0.3' ? PROTOCOL_VERSION : version,
      places: mayReceive(url, address, options) ? places : []
    }
    const opener = openers[version][binding]
    const open = opener
      ? (missingSupport(url, binding, opener.lacks, placedOptions) ??
        (await opener.load().catch(cause => missing(url, binding, opener, cause))))
      : onlyInNode(url, offer, openers)
    if (open instanceof A2AError) return { why: open }
    if (!isLast && !isSameOrigin(url, address)) {
      const { unreachable } = await import('./transports/http.ts')
      const lost = await unreachable(address, options)
      if (lost) return { why: lost, isOdd: true }
    }
    const calls = await open(address, placedOptions, isReliable(card)).catch(error => {
      throw explainRefusal(error, placedOptions)
    })
    return {
      calls,
      binding,
      tenant,
      name: card.name,
      version,
      streams: card.capabilities.streaming === true,
      options: placedOptions
    }
  } catch (error) {
    if (!isA2AError(error) || error.code === 'Unauthenticated' || error.code === 'Forbidden') throw error
    return { why: error, isOdd: true }
  }
}

function withoutTls(url: string, { binding, url: address }: UsableInterface): A2AError {
  return new A2AError(
    'Forbidden',
    `The card at ${url} names ${address} for ${binding}, which does not use TLS, after an address with TLS that could not be used.`
  )
}

/**
 * Options for a connection to a `ws:` URL, with the places that the card of its host names. Without a readable card,
 * there is no scheme.
 */
export async function placedForSocket(url: string, options: ConnectOptions): Promise<PlacedOptions> {
  const card = await fetchCard(url, options).catch(error => {
    if (isA2AError(error)) return {}
    throw error
  })
  return { ...options, places: placesIn(card, options.credentials) }
}

/** The interfaces that may receive the credentials come first, if there are some to send. */
function receiversFirst(
  offers: readonly UsableInterface[],
  url: string,
  isToSend: boolean,
  options: ConnectOptions
): readonly UsableInterface[] {
  if (!isToSend) return offers
  const rank = ({ url: address }: UsableInterface) => (mayReceive(url, address, options) ? 0 : 1)
  return offers.toSorted((a, b) => rank(a) - rank(b))
}

/** The error for credentials that a binding cannot carry; `undefined` if it can. */
export function missingSupport(
  url: string,
  binding: Binding,
  lacks: Opener['lacks'] = {},
  placedOptions: Required<Pick<PlacedOptions, 'places'>> & ConnectOptions
): A2AError | undefined {
  const carriers = [
    ...(hasHeaders(placedOptions) ? ['header' as const] : []),
    ...placedOptions.places.map(({ carrier }) => carrier)
  ]
  const unsupported = carriers.map(carrier => lacks[carrier]).find(text => text !== undefined)
  if (unsupported === undefined) return undefined
  return new A2AError(
    'UnsupportedOperation',
    `The agent at ${url} speaks ${binding}, over which this client cannot send ${unsupported}.`
  )
}

function missing(url: string, binding: Binding, { peers = '' }: Opener, cause: unknown): A2AError {
  return new A2AError(
    'UnsupportedOperation',
    `The agent at ${url} speaks ${binding}, for which a package is missing. Install it: npm install ${peers}`,
    { cause }
  )
}

function onlyInNode(url: string, { binding, version }: UsableInterface, openers: Openers): A2AError {
  const spoken = Object.keys(openers[version]).join(', ')
  return new A2AError(
    'UnsupportedOperation',
    `The agent at ${url} speaks ${binding} ${version}, which this client speaks only in Node. In browsers it speaks ${spoken}.`
  )
}

function isReliable({ capabilities: { extensions = [] } }: AgentCard): boolean {
  return extensions.some(({ uri }) => uri === RELIABILITY_EXTENSION)
}

/** The versions of A2A that this client supports, the newest first. */
export const CLIENT_VERSIONS = [...NATIVE_VERSIONS, '0.3'] as const

type ClientVersion = (typeof CLIENT_VERSIONS)[number]

/** Validates the option `versions`. Throws TypeError for a version that this client does not support. */
function readVersions(names: readonly string[] | undefined): readonly ClientVersion[] | undefined {
  return names?.map(name => {
    const version = CLIENT_VERSIONS.find(known => known === name)
    if (version) return version
    throw new TypeError(
      `${JSON.stringify(name)} is not a version of A2A that this client speaks. Use ${CLIENT_VERSIONS.join(' or ')}.`
    )
  })
}

/**
 * The interfaces of a card that this client supports, the preferred one first (§8.3.2). Newer versions come first.
 * Within a version the order is that of `wanted`, if given, else of the card. Throws UnsupportedOperation if there is
 * none, and lists what the card offers; VersionNotSupported if there is none of the given `versions`. `url` is the URL
 * of the card.
 */
export function offersOf(
  { supportedInterfaces }: AgentCard,
  url: string,
  wanted?: readonly Binding[],
  versions?: readonly ClientVersion[]
): readonly [UsableInterface, ...UsableInterface[]] {
  const isUsed = (version: ClientVersion) => versions?.includes(version) ?? true
  const offered = [...new Set(supportedInterfaces.map(({ protocolVersion }) => protocolVersion))].join(', ')
  const known = supportedInterfaces.flatMap(one => versionOf(one) ?? [])
  if (known.length === 0) throw onlyOlder(url, offered, CLIENT_VERSIONS)
  if (versions && !known.some(isUsed))
    throw new A2AError(
      'VersionNotSupported',
      `The agent at ${url} does not offer A2A ${versions.join(' or ')}, only ${offered}.`
    )
  const spoken = wanted ?? BINDINGS
  const offers = supportedInterfaces.flatMap((offered): UsableInterface[] => {
    const { protocolBinding, url, tenant } = offered
    const [binding, version] = [bindingNamed(protocolBinding), versionOf(offered)]
    if (!binding || !version || !isUsed(version) || !spoken.includes(binding)) return []
    if (version !== '0.3') return [{ binding, version, url, tenant }]
    return binding === 'WEBSOCKET' ? [] : [{ binding, version, url, tenant }]
  })
  const place = ({ version, binding }: UsableInterface) =>
    CLIENT_VERSIONS.indexOf(version) * spoken.length + (wanted ? spoken.indexOf(binding) : 0)
  const [first, ...others] = offers.toSorted((a, b) => place(a) - place(b))
  if (!first) throw noneOf(spoken, supportedInterfaces, url)
  return [first, ...others]
}

/** The error for an agent that supports none of this client's versions. */
export function onlyOlder(url: string, versions: string, spoken: readonly string[]): A2AError {
  return new A2AError(
    'UnsupportedOperation',
    `The agent at ${url} speaks only A2A ${versions}; this client speaks ${spoken.join(', ').replace(/, ([^,]*)$/, ' and $1')}.`
  )
}

function versionOf({ protocolVersion }: AgentInterface): UsableInterface['version'] | undefined {
  const version = normaliseVersion(protocolVersion)
  return CLIENT_VERSIONS.find(known => known === version)
}

function noneOf(spoken: readonly Binding[], offered: readonly AgentInterface[], url: string): A2AError {
  const names = offered
    .map(({ protocolBinding, protocolVersion }) => `${protocolBinding} ${protocolVersion}`)
    .join(', ')
  return new A2AError(
    'UnsupportedOperation',
    `The agent at ${url} offers no ${spoken.join(' or ')} that this client speaks (A2A ${NATIVE_VERSIONS.join(' and ')}; 0.3, but not over WebSocket), only ${names}.`
  )
}
