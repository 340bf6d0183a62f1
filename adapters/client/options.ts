import type { AgentCard } from '../../machines/protocol/card.ts'
import { systemClock, type Clock } from '../../runtime/ports/clock.ts'
import { A_CLOCK, checkOptions, functionFor, kindOf, objectSuchAs, textsSuchAs, withMethods, type Kind, type OptionKinds } from '../../runtime/primitives/options.ts'
import { A_TELEMETRY, type Telemetry } from '../../runtime/telemetry/telemetry.ts'
import type { CardLimits } from './card/card-limits.ts'
import type { BackOffOptions } from './retries/back-off.ts'

/** Headers of requests: as they are, or asked for again at each. */
export type Headers = Readonly<Record<string, string>> | (() => Readonly<Record<string, string>>)

/**
 * Verifies a card as it was read from a URL, and gives it: `cardVerifier({ jwksUrl })` of `taskchart/cards`. Rejects for one that
 * is not to be trusted.
 */
export type VerifyCard = (card: unknown, url: string) => Promise<AgentCard>

/** How to connect. */
export interface ConnectOptions {
  /**
   * Headers of every request, or of the handshake of a WebSocket, such as `authorization`; over gRPC they are metadata. A
   * function is asked again at each. They go to the origin of the given address, and to `credentialOrigins`. In browsers a
   * WebSocket cannot have any.
   */
  readonly headers?: Headers
  /**
   * Origins that may have `headers` beside that of the given address, if its card names them: `https://agent.example:8443`.
   * `ws:` and `grpc:` count as `http:`, `wss:` and `grpcs:` as `https:`. Default none.
   */
  readonly credentialOrigins?: readonly string[]
  /** URIs of extensions to activate beside the reliability extension, which always is. */
  readonly extensions?: readonly string[]
  /**
   * Which bindings may be used, the one to prefer first: `WEBSOCKET`, `JSONRPC`, `HTTP+JSON`, `GRPC`, or the URI of ours.
   * Default: all of them, as the agent's card prefers.
   */
  readonly bindings?: readonly string[]
  /**
   * Verifies the agent's card before anything that it says counts: `cardVerifier({ jwksUrl })` of `taskchart/cards`. It is then
   * asked for at a `ws:` address, too. Default: cards are taken as they are.
   */
  readonly verifyCard?: VerifyCard
  /** How much of the agent's card is read, and for how long. Each limit has a default. */
  readonly cardLimits?: Partial<CardLimits>
  /** Gives up connecting for the first time. */
  readonly signal?: AbortSignal
  /** How long a lost connection is tried again before calls and streams fail. Default 5 minutes; 0 never tries. */
  readonly giveUpAfterMs?: number
  readonly clock?: Clock
  /** A random number from 0 up to 1, for the jitter of the back-off. Default `Math.random`. */
  readonly random?: () => number
  /** Traces the calls: `openTelemetry()` of `taskchart/opentelemetry`. Default: nothing is traced. */
  readonly telemetry?: Telemetry
}

/** The options of `connect`, for those who take them too. */
export const CONNECT_OPTIONS: OptionKinds<ConnectOptions> = {
  headers: [value => typeof value === 'object' || typeof value === 'function', "an object such as { authorization: 'Bearer …' }, or a function that gives one"],
  credentialOrigins: textsSuchAs("['https://agent.example']"),
  extensions: textsSuchAs("['https://example.com/ext/v1']"),
  bindings: textsSuchAs("['WEBSOCKET']"),
  verifyCard: functionFor('a function that verifies a card: cardVerifier({ jwksUrl }) of taskchart/cards'),
  cardLimits: objectSuchAs('{ skills: 100 }'),
  signal: withMethods(['addEventListener', 'throwIfAborted'], 'an AbortSignal'),
  giveUpAfterMs: [value => Number(value) >= 0, 'milliseconds from 0'],
  clock: A_CLOCK,
  random: functionFor('a function that gives a number from 0 up to 1'),
  telemetry: A_TELEMETRY
}

/** Checks what `connect` is given, and what else takes its options. Throws TypeError that says what to write. */
export function checkConnect(url: unknown, options: unknown, taker = 'connect', kinds: Readonly<Record<string, Kind | true>> = CONNECT_OPTIONS): void {
  if (typeof url !== 'string') throw new TypeError(`${taker} takes the address of an agent, not ${kindOf(url)}: ${taker}('http://127.0.0.1:4242/').`)
  checkOptions(options, kinds, taker, `${taker}(url, { headers: { … } })`)
}

const GIVE_UP_AFTER_MS = 5 * 60 * 1000

/** The options that say how what was lost is tried again, with their defaults. */
export function backOffOptions({ clock = systemClock, random = Math.random, giveUpAfterMs = GIVE_UP_AFTER_MS }: ConnectOptions): BackOffOptions {
  return { clock, random, giveUpAfterMs }
}

/** The headers for one request. */
export function currentHeaders({ headers = {} }: ConnectOptions): Readonly<Record<string, string>> {
  return typeof headers === 'function' ? headers() : headers
}
