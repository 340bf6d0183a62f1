import type { AgentInterface } from '../../machines/protocol/card.ts'
import { isA2AError } from '../../machines/protocol/errors.ts'
import type { Principal } from '../../runtime/access/authentication.ts'
import type { CallContext, Budget } from '../../runtime/access/call-context.ts'
import { readingCost } from '../../runtime/access/call-scheduler.ts'
import { AnswerSpace, type Owner, IncompleteBytes, sharerKeyOf } from '../../runtime/access/shares.ts'
import { jitter } from '../../runtime/primitives/event-loop.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import type { AnswerHeaders } from '../entry/answers.ts'
import { connectionOf, disconnectSignal, type HttpRequest, type NodeResponse } from '../entry/connection.ts'
import type { ServiceParameters } from '../json-rpc/dispatch.ts'
import {
  callParameters,
  plainParameters,
  type CallParameters,
  type TraceParameters
} from '../json-rpc/service-parameters.ts'

type Settings = ServedRuntime['settings']

/** The parts of a request that are known before authentication. */
export interface RequestHead {
  /** The path below the base, with a leading slash and no trailing one; `/` for the base itself. */
  readonly path: string
  readonly query: URLSearchParams
  readonly parameters: CallParameters
  /** Headers of every answer: CORS. */
  readonly headers: AnswerHeaders
  /** The interfaces of the agent, for its extended card. */
  readonly interfaces: readonly AgentInterface[]
  /** The cost of reading a request beyond that of its bytes, as a number of bytes. Default 0. */
  readonly extraCost?: number
}

/** The caller and the path of a request. */
interface CallerAndTenant {
  readonly principal: Principal | undefined
  /** The tenant that the path names. */
  readonly pathTenant: string | undefined
  /** The trace context, if the runtime traces. */
  readonly traced: TraceParameters | undefined
}

/** An admitted request, with what its bindings need. */
export class HttpCall {
  readonly request: HttpRequest
  /** Node's response, if the server provides it. */
  readonly served: NodeResponse
  readonly head: RequestHead
  readonly caller: CallerAndTenant
  /** Headers of every answer: active extensions and CORS. */
  readonly headers: AnswerHeaders
  /** The bytes of the body that have arrived. */
  bytes = 0
  /** The tenant of the call: that in the path of a JSON-RPC request, or of a REST request once that is read. */
  tenant: string | undefined
  readonly #settings: Settings
  #space: AnswerSpace | undefined

  constructor(
    settings: Settings,
    request: HttpRequest,
    served: NodeResponse,
    head: RequestHead,
    caller: CallerAndTenant,
    tenant: string | undefined
  ) {
    this.#settings = settings
    this.request = request
    this.served = served
    this.head = head
    this.caller = caller
    this.tenant = tenant
    const { activated } = head.parameters
    this.headers = activated.length === 0 ? head.headers : { ...head.headers, ...activation(request, activated) }
  }

  /** The memory of a large answer, or of a stream's first event; `undefined` unless it is large. */
  get space(): AnswerSpace | undefined {
    return this.#space
  }

  /** Waits for the memory of a large answer. */
  reserve(bytes: number): Promise<void> | undefined {
    const { principal, pathTenant: tenant } = this.caller
    const owner = { user: connectionOf(this.served) ?? this.request, ...this.#settings.ownerOf(principal, tenant) }
    this.#space ??= new AnswerSpace(bytes => this.#settings.largeAnswers.enter(owner, bytes))
    return this.#space.take(bytes)
  }

  /** Counts the bytes of an incomplete body. */
  incompleteBytes(): IncompleteBytes {
    return new IncompleteBytes(this.#settings.unfinished, this.#owner)
  }

  /** Schedules the parsing of a body. Resolves when it is its turn; `undefined` if it is now. */
  parsingTurn(): Promise<void> | undefined {
    return this.#settings.scheduler.reading.next(
      sharerKeyOf(this.#owner, connectionOf(this.served) ?? this.request),
      readingCost(this.bytes) + (this.head.extraCost ?? 0)
    )
  }

  get #owner(): Owner {
    return this.#settings.ownerOf(this.caller.principal, this.tenant)
  }
}

/** Lists the active extensions in the header of the request's version: 0.3 has another name. */
function activation({ headers }: HttpRequest, activated: readonly string[]): AnswerHeaders {
  return { [headers.has('x-a2a-extensions') ? 'X-A2A-Extensions' : 'A2A-Extensions']: activated.join(',') }
}

/** The header names of 0.3 and of server-sent events for service parameters. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  'a2a-extensions': 'x-a2a-extensions',
  'taskchart-after-generation': 'last-event-id'
}

/** Service parameters that are ignored without an active extension. */
const CONDITIONS = ['taskchart-after-generation', 'taskchart-if-generation-match', 'taskchart-current-generation']

/** The parameters of a call (§3.2.6): from its headers, or from its query, for clients that cannot set headers. */
export function parametersOf(
  { headers }: HttpRequest,
  query: URLSearchParams,
  supported: readonly string[]
): CallParameters {
  if (query.size === 0 && !headers.has('a2a-extensions') && !headers.has('x-a2a-extensions'))
    return plainParameters(headers.get('a2a-version') ?? '')
  const parameters = new Map<string, string>()
  const read = (name: string) => {
    const value = headers.get(name) ?? headers.get(OTHER_NAMES[name] ?? name)
    if (value !== null) parameters.set(name, value)
  }
  read('a2a-version')
  read('a2a-extensions')
  const defaults = { version: queried(query, 'a2a-version'), extensions: queried(query, 'a2a-extensions') }
  if (parameters.has('a2a-extensions') || defaults.extensions !== '') CONDITIONS.forEach(read)
  return callParameters(parameters satisfies ServiceParameters, defaults, supported)
}

/** The additions of a stream to its call's context. */
export interface EventStreamOptions {
  readonly signal: AbortSignal
  readonly onGeneration: (generation: number) => void
}

/** The context of a call. It aborts when its client disconnects, unless a stream has a signal of its own. */
export function callContextOf(call: HttpCall, stream?: EventStreamOptions): CallContext {
  const {
    bytes,
    served,
    tenant,
    head: { parameters, interfaces },
    caller: { principal, traced }
  } = call
  const { version, extensions, conditions } = parameters
  const signal = stream ? stream.signal : goneSignal(call)
  const budget: Budget = async bytes => {
    await call.reserve(bytes)
    // Reads nothing for a client that has disconnected.
    signal.throwIfAborted()
  }
  return {
    version,
    extensions,
    conditions,
    interfaces,
    bytes,
    budget: budget,
    connection: connectionOf(served),
    signal,
    onGeneration: stream?.onGeneration,
    tenant,
    principal: principal?.id,
    claims: principal?.claims,
    trace: traced?.trace,
    binding: traced?.binding
  }
}

/** Aborts when the client of a call disconnects. */
export function goneSignal({ request, served: { direct } }: HttpCall): AbortSignal {
  return direct ? disconnectSignal(direct.socket) : (request.signal as AbortSignal)
}

function queried(query: URLSearchParams, wanted: string): string {
  if (query.size === 0) return ''
  for (const [name, value] of query) if (name.toLowerCase() === wanted) return value
  return ''
}

/**
 * The delay of an answer that refuses a request over its quota, in milliseconds. The connection is blocked meanwhile.
 */
const heldMs = jitter(200)

/** Delays the answer to a request that a quota refuses, so that a client that keeps sending does not delay others. */
export async function delayRefusal(error: unknown, { clock }: Settings): Promise<void> {
  if (!isA2AError(error) || error.metadata['quota'] === undefined) return
  await new Promise<void>(resolve => void clock.setTimeout(resolve, heldMs()))
}
