import type { AgentCard } from '../../machines/protocol/card.ts'
import type { NativeVersion } from '../../machines/protocol/versions.ts'
import { systemClock, type Clock } from '../../runtime/ports/clock.ts'
import {
  A_CLOCK,
  checkOptions,
  functionFor,
  kindOf,
  objectSuchAs,
  textsSuchAs,
  withMethods,
  type Kind,
  type OptionKinds,
  A_TELEMETRY
} from '../../runtime/primitives/options.ts'
import type { Telemetry } from '../../runtime/telemetry-port.ts'
import type { CardLimits } from './card/card-limits.ts'
import type { BackOffOptions } from './retries/transport-state.ts'

/** Headers of requests: constant, or a function that is called for each request. */
export type RequestHeaders = Readonly<Record<string, string>> | (() => Readonly<Record<string, string>>)

/**
 * Verifies the unvalidated JSON of a card from a URL, and returns the card: `cardVerifier({ jwksUrl })` of
 * `taskchart/auth`. Rejects for a card that is not trusted.
 */
export type VerifyCard = (card: unknown, url: string) => Promise<AgentCard>

/** The options of `connect`. */
export interface ConnectOptions {
  /**
   * Headers of every request, or of a WebSocket's handshake, such as `authorization`; over gRPC they are metadata. A
   * function is called for each request. They are sent to the origin of the given URL, and to `credentialOrigins`. A
   * request for the card has them only if it is refused without. In browsers, WebSockets cannot send headers, so
   * another binding is used.
   */
  readonly headers?: RequestHeaders
  /**
   * An API key or a token, which is sent as the card's security scheme says. A header in `headers` with the same name
   * takes precedence.
   */
  readonly credentials?: ClientCredentials
  /**
   * Other origins that may receive `headers` and `credentials`, if the agent's card names them:
   * `https://agent.example:8443`. `ws:` and `grpc:` count as `http:`, `wss:` and `grpcs:` as `https:`. Default none.
   */
  readonly credentialOrigins?: readonly string[]
  /** URIs of extensions to activate, in addition to the reliability extension. */
  readonly extensions?: readonly string[]
  /**
   * The bindings to use, the preferred one first: `WEBSOCKET`, `JSONRPC`, `HTTP+JSON`, `GRPC`, or the URI of the
   * WebSocket binding. Default: all, in the order of the agent's card.
   */
  readonly bindings?: readonly string[]
  /**
   * The versions of A2A to use: `1.1`, `1.0`, `0.3`. The card is then also fetched for a `ws:` URL. Default: all that
   * this client supports, the newest first.
   */
  readonly versions?: readonly string[]
  /**
   * The JSON of the agent's card, of any version, if it is known: none is fetched. The URL is then that of the agent's
   * host, which may receive `headers` and `credentials`.
   */
  readonly card?: object
  /**
   * Verifies the agent's card before it is used: `cardVerifier({ jwksUrl })` of `taskchart/auth`. The card is then
   * also fetched for a `ws:` URL. Default: cards are not verified.
   */
  readonly verifyCard?: VerifyCard
  /** Limits for reading the agent's card. Each has a default. */
  readonly cardLimits?: Partial<CardLimits>
  /** Aborts the first connection attempt. */
  readonly signal?: AbortSignal
  /** How long a lost connection is retried before calls and streams fail. Default 5 minutes; 0 never retries. */
  readonly giveUpAfterMs?: number
  /** How often a task is read if the agent does not stream. Default: after 1 second, then less often up to 15. */
  readonly pollIntervalMs?: number
  readonly clock?: Clock
  /** A random number from 0 up to 1, for the jitter of the back-off. Default `Math.random`. */
  readonly random?: () => number
  /** Traces the calls: `openTelemetry()` of `taskchart/opentelemetry`. Default: nothing is traced. */
  readonly telemetry?: Telemetry
}

/** The options of `connect`, for other functions that accept them. */
export const CONNECT_OPTIONS: OptionKinds<ConnectOptions> = {
  headers: [
    value => typeof value === 'object' || typeof value === 'function',
    "an object such as { authorization: 'Bearer …' }, or a function that gives one"
  ],
  credentials: objectSuchAs("{ apiKey: '…' }"),
  credentialOrigins: textsSuchAs("['https://agent.example']"),
  extensions: textsSuchAs("['https://example.com/ext/v1']"),
  bindings: textsSuchAs("['WEBSOCKET']"),
  versions: textsSuchAs("['1.0']"),
  card: objectSuchAs("{ name: 'Painter', supportedInterfaces: [ … ] }"),
  verifyCard: functionFor('a function that verifies a card: cardVerifier({ jwksUrl }) of taskchart/auth'),
  cardLimits: objectSuchAs('{ skills: 100 }'),
  signal: withMethods(['addEventListener', 'throwIfAborted'], 'an AbortSignal'),
  giveUpAfterMs: [value => Number(value) >= 0, 'milliseconds from 0'],
  pollIntervalMs: [value => Number(value) >= 1, 'milliseconds from 1'],
  clock: A_CLOCK,
  random: functionFor('a function that gives a number from 0 up to 1'),
  telemetry: A_TELEMETRY
}

/** Validates the arguments of `connect` and of functions with its options. Throws TypeError that says what to write. */
export function checkConnect(
  url: unknown,
  options: unknown,
  taker = 'connect',
  kinds: Readonly<Record<string, Kind | true>> = CONNECT_OPTIONS
): void {
  if (typeof url !== 'string')
    throw new TypeError(
      `${taker} takes the address of an agent, not ${kindOf(url)}: ${taker}('http://127.0.0.1:4242/').`
    )
  checkOptions(options, kinds, taker, `${taker}(url, { headers: { … } })`)
}

const GIVE_UP_AFTER_MS = 5 * 60 * 1000

/** The options for retries, with their defaults. */
export function backOffOptions({
  clock = systemClock,
  random = Math.random,
  giveUpAfterMs = GIVE_UP_AFTER_MS
}: ConnectOptions): BackOffOptions {
  return { clock, random, giveUpAfterMs }
}

/** The options of an open connection, whose credentials have their places. */
export interface PlacedOptions extends ConnectOptions {
  /** The version of its requests, before a translation to 0.3. Default 1.0. */
  readonly version?: NativeVersion
  readonly places?: readonly SecretPlace[]
}

/** Whether there are headers to send. A function is not called for that. */
export function hasHeaders({ headers = {} }: ConnectOptions): boolean {
  return typeof headers === 'function' || Object.keys(headers).length > 0
}

/** The headers for one request. Those of the options replace credentials with the same name. */
export function currentHeaders({ headers = {}, places = [] }: PlacedOptions): Readonly<Record<string, string>> {
  const given = typeof headers === 'function' ? headers() : headers
  if (places.length === 0) return given
  const names = new Set(Object.keys(given).map(name => name.toLowerCase()))
  const cookies = places
    .filter(({ carrier }) => carrier === 'cookie')
    .map(({ name, value }) => `${name}=${value.replaceAll(/[",;\\]/g, encodeURIComponent)}`)
  const secrets = [
    ...places
      .filter(({ carrier }) => carrier === 'header')
      .map(({ name, value }) => [name.toLowerCase(), value] as const),
    ...(cookies.length > 0 ? [['cookie', cookies.join('; ')] as const] : [])
  ]
  return { ...Object.fromEntries(secrets.filter(([name]) => !names.has(name))), ...given }
}

/** The URL for one request: the agent's, with the credentials that go into its query. */
export function currentAddress(url: string, { places = [] }: PlacedOptions): string {
  const parameters = places.filter(({ carrier }) => carrier === 'query')
  if (parameters.length === 0) return url
  const address = new URL(url)
  for (const { name, value } of parameters) address.searchParams.set(name, value)
  return address.href
}

/** Secrets of the caller, which are sent where the agent's card says. */
export interface ClientCredentials {
  /**
   * An API key. The card's security scheme says where it goes: a header, the query, a cookie, or `Authorization:
   * Bearer`. Without a scheme it is `Authorization: Bearer`.
   */
  readonly apiKey?: string
  /** A bearer token, for the schemes of HTTP, OAuth 2.0 and OpenID Connect. */
  readonly bearer?: string
  /**
   * Sends them only if the card has a scheme for them, or is itself refused without them. They are then left out for
   * other origins, where `connect` otherwise rejects with Forbidden. Default false.
   */
  readonly onlyIfAsked?: boolean
}

/** Where one secret goes in a request. */
export interface SecretPlace {
  readonly carrier: 'header' | 'query' | 'cookie'
  readonly name: string
  readonly value: string
}
