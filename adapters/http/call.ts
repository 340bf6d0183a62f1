import type { AgentInterface } from '../../machines/protocol/card.ts'
import type { Principal } from '../../runtime/access/authentication.ts'
import type { AnswerSpace } from '../../runtime/access/answer-room.ts'
import type { CallContext, Room } from '../../runtime/access/call-context.ts'
import { readingCost } from '../../runtime/access/fair-queue.ts'
import { userOf } from '../../runtime/access/shares.ts'
import { Unfinished } from '../../runtime/access/unfinished-bytes.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { connectionOf, disconnectSignal, type NodeResponse } from '../entry/connection.ts'
import type { ServiceParameters } from '../json-rpc/envelope.ts'
import { callTerms, type CallTerms, type TraceTerms } from '../json-rpc/service-parameters.ts'
import type { BodyIntake, BodySize } from './body.ts'

/** A request that was let in, and what its bindings need to know of it. */
export interface HttpCall {
  readonly request: Request
  /** Node's response to it, as far as the server has told. */
  readonly served: NodeResponse
  /** The path below the base, with a slash in front and none behind; `/` for the base itself. */
  readonly path: string
  readonly size: BodySize
  /** The room of the answer, or of what the stream begins with. */
  readonly space: AnswerSpace
  readonly query: URLSearchParams
  readonly principal: Principal | undefined
  /** The tenant that the path names, where JSON-RPC is called there. */
  readonly tenant?: string
  readonly terms: CallTerms
  /** Headers of every answer: which extensions are active, which page may read it. */
  readonly headers: Readonly<Record<string, string>>
  /** Where the agent is reached. */
  readonly interfaces: readonly AgentInterface[]
  /** Where it belongs, if the runtime traces. */
  readonly traced: TraceTerms | undefined
}

/** The names that 0.3 and server-sent events have for service parameters. */
const OTHER_NAMES: Readonly<Record<string, string>> = { 'a2a-extensions': 'x-a2a-extensions', 'taskchart-after-generation': 'last-event-id' }

/** Service parameters that count only where an extension is active. */
const CONDITIONS = ['taskchart-after-generation', 'taskchart-if-generation-match', 'taskchart-current-generation']

/** On what terms a request calls (§3.2.6): by its headers, or by its query for clients that cannot set them. */
export function termsOf({ headers }: Request, query: URLSearchParams, supported: readonly string[]): CallTerms {
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

/** What a stream adds to the context of its call. */
export type StreamTerms = Required<Pick<CallContext, 'signal' | 'numbered'>>

/** The context of a call, whose waiting ends when its client is gone unless a stream has terms of its own. */
export function contextOf(call: HttpCall, streamTerms?: StreamTerms): CallContext {
  const { size, space, principal, tenant, terms, interfaces, traced } = call
  const { version, extensions, conditions } = terms
  const { signal = goneSignal(call), ...more }: Partial<StreamTerms> = streamTerms ?? {}
  const room: Room = async bytes => {
    await space.take(bytes)
    // Nothing is read for a client that has left.
    signal.throwIfAborted()
  }
  const context = { version, extensions, conditions, interfaces, bytes: size.bytes, room, connection: connectionOf(call.served), signal, ...more }
  return Object.assign(context, tenant !== undefined && { tenant }, principal && { principal: principal.id, claims: principal.claims }, traced)
}

/** The counts of a call's body while it is not parsed, and its turn to be parsed. */
export function intakeOf({ settings }: Runtime, { principal, tenant, size, served, request }: HttpCall): BodyIntake {
  const sharer = settings.sharerOf(principal, tenant)
  return {
    size,
    unfinished: () => new Unfinished(settings.unfinished, sharer),
    turn: bytes => settings.turns.reading.next(userOf(sharer, connectionOf(served) ?? request), readingCost(bytes))
  }
}

function goneSignal({ request, served: { direct } }: HttpCall): AbortSignal {
  return direct ? disconnectSignal(direct.socket) : request.signal
}

function queried(query: URLSearchParams, wanted: string): string {
  if (query.size === 0) return ''
  for (const [name, value] of query) if (name.toLowerCase() === wanted) return value
  return ''
}
