import type { AgentInterface } from '../../machines/protocol/card.ts'
import { isA2AError } from '../../machines/protocol/errors.ts'
import type { Principal } from '../../runtime/access/authentication.ts'
import type { AnswerSpace } from '../../runtime/access/answer-room.ts'
import type { CallContext, Room } from '../../runtime/access/call-context.ts'
import { readingCost } from '../../runtime/access/fair-queue.ts'
import { userOf } from '../../runtime/access/shares.ts'
import { Unfinished } from '../../runtime/access/unfinished-bytes.ts'
import { jitter } from '../../runtime/primitives/jitter.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { connectionOf, disconnectSignal, type HttpRequest, type NodeResponse } from '../entry/connection.ts'
import type { ServiceParameters } from '../json-rpc/envelope.ts'
import { callTerms, type CallTerms, type TraceTerms } from '../json-rpc/service-parameters.ts'
import type { BodyIntake, BodySize } from './body.ts'

/** An admitted request, with what its bindings need. */
export interface HttpCall {
  readonly request: HttpRequest
  /** Node's response, if the server provides it. */
  readonly served: NodeResponse
  /** The path below the base, with a leading slash and no trailing one; `/` for the base itself. */
  readonly path: string
  readonly size: BodySize
  /** The memory quota of a large answer, or of a stream's first event. */
  readonly space: AnswerSpace
  readonly query: URLSearchParams
  readonly principal: Principal | undefined
  /** The tenant in the path of a JSON-RPC request. */
  readonly tenant?: string
  readonly terms: CallTerms
  /** Headers of every answer: active extensions and CORS. */
  readonly headers: Readonly<Record<string, string>>
  /** The interfaces of the agent, for its extended card. */
  readonly interfaces: readonly AgentInterface[]
  /** The trace context, if the runtime traces. */
  readonly traced: TraceTerms | undefined
}

/** The header names of 0.3 and of server-sent events for service parameters. */
const OTHER_NAMES: Readonly<Record<string, string>> = { 'a2a-extensions': 'x-a2a-extensions', 'taskchart-after-generation': 'last-event-id' }

/** Service parameters that are ignored without an active extension. */
const CONDITIONS = ['taskchart-after-generation', 'taskchart-if-generation-match', 'taskchart-current-generation']

/** The terms of a call (§3.2.6): from its headers, or from its query, for clients that cannot set headers. */
export function termsOf({ headers }: HttpRequest, query: URLSearchParams, supported: readonly string[]): CallTerms {
  const parameters = new Map<string, string>()
  const read = (name: string) => {
    const value = headers.get(name) ?? headers.get(OTHER_NAMES[name] ?? name)
    if (value !== null) parameters.set(name, value)
  }
  read('a2a-version')
  read('a2a-extensions')
  const defaults = { version: queried(query, 'a2a-version'), extensions: queried(query, 'a2a-extensions') }
  if (parameters.has('a2a-extensions') || defaults.extensions !== '') CONDITIONS.forEach(read)
  return callTerms(parameters satisfies ServiceParameters, defaults, supported)
}

/** The additions of a stream to its call's context. */
export type StreamTerms = Required<Pick<CallContext, 'signal' | 'numbered'>>

/** The context of a call. It aborts when its client disconnects, unless a stream has a signal of its own. */
export function contextOf(call: HttpCall, streamTerms?: StreamTerms): CallContext {
  const { size, space, principal, tenant, terms, interfaces, traced } = call
  const { version, extensions, conditions } = terms
  const { signal = goneSignal(call), ...more }: Partial<StreamTerms> = streamTerms ?? {}
  const room: Room = async bytes => {
    await space.take(bytes)
    // Reads nothing for a client that has disconnected.
    signal.throwIfAborted()
  }
  const context = { version, extensions, conditions, interfaces, bytes: size.bytes, room, connection: connectionOf(call.served), signal, ...more }
  return Object.assign(context, tenant !== undefined && { tenant }, principal && { principal: principal.id, claims: principal.claims }, traced)
}

/** Counts a call's body while it is unparsed, and schedules its parsing. */
export function intakeOf({ settings }: Runtime, { principal, tenant, size, served, request }: HttpCall): BodyIntake {
  const sharer = settings.sharerOf(principal, tenant)
  return {
    size,
    unfinished: () => new Unfinished(settings.unfinished, sharer),
    turn: bytes => settings.scheduler.reading.next(userOf(sharer, connectionOf(served) ?? request), readingCost(bytes))
  }
}

function goneSignal({ request, served: { direct } }: HttpCall): AbortSignal {
  return direct ? disconnectSignal(direct.socket) : (request.signal as AbortSignal)
}

function queried(query: URLSearchParams, wanted: string): string {
  if (query.size === 0) return ''
  for (const [name, value] of query) if (name.toLowerCase() === wanted) return value
  return ''
}

/** The delay of an answer that refuses a request over its quota, in milliseconds. The connection is blocked meanwhile. */
const heldMs = jitter(200)

/** Delays the answer to a request that a quota refuses, so that a client that keeps sending does not delay others. */
export async function delayRefusal(error: unknown, { clock }: Runtime['settings']): Promise<void> {
  if (!isA2AError(error) || error.metadata['quota'] === undefined) return
  await new Promise<void>(resolve => void clock.setTimeout(resolve, heldMs()))
}
