import type { AgentCard } from '../../machines/protocol/card.ts'
import { systemClock, type Clock } from '../../runtime/clock.ts'
import type { Telemetry } from '../../runtime/telemetry.ts'
import type { BackOffOptions } from './back-off.ts'
import type { CardLimits } from './card-limits.ts'

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

const GIVE_UP_AFTER_MS = 5 * 60 * 1000

/** The options that say how what was lost is tried again, with their defaults. */
export function backOffOptions({ clock = systemClock, random = Math.random, giveUpAfterMs = GIVE_UP_AFTER_MS }: ConnectOptions): BackOffOptions {
  return { clock, random, giveUpAfterMs }
}

/** The headers for one request. */
export function currentHeaders({ headers = {} }: ConnectOptions): Readonly<Record<string, string>> {
  return typeof headers === 'function' ? headers() : headers
}
