import { A2AError, invalidParams, isA2AError } from '../../machines/protocol/errors.ts'
import type { StreamResponse } from '../../machines/protocol/objects.ts'
import { PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import type { Calls } from './calls.ts'
import { readBindings, type Binding } from './card/bindings.ts'
import { checkAccess, explainRefusal } from './credentials.ts'
import { isSocketAddress } from './hosts.ts'
import type { OpenByCard } from './open-by-card.ts'
import { OPENERS } from './openers.ts'
import { backOffOptions, type ConnectOptions, type PlacedOptions } from './options.ts'
import type { StreamProgress } from './requests.ts'
import type { LinkState } from './retries/transport-state.ts'
import { wholeStreams } from './retries/whole-streams.ts'
import type { CalledAgent } from './traced-calls.ts'
import { warnOf } from './warnings.ts'

/** A connected agent. */
export interface OpenAgent {
  readonly calls: Calls
  readonly binding: Binding
  readonly tenant: TenantRule
  /** The options, with the places of the credentials. */
  readonly options: PlacedOptions
  /** The version of A2A in use. */
  readonly version: string
  /** Opens another interface, as {@link OpenByCard} does; `undefined` without a card. */
  readonly next?: (isStale: boolean) => Promise<OpenAgent>
}

/**
 * Chooses an interface of the agent, and opens a connection to it, as documented at `connect`. Without a card, nothing
 * is loaded that reads one. If a WebSocket cannot send the headers, a `ws:` URL is only that of the card.
 */
export async function openAgentConnection(url: string, options: ConnectOptions, openers = OPENERS): Promise<OpenAgent> {
  const given = readBindings(options.bindings)
  checkAccess(options)
  const { headers, credentials, verifyCard, versions, card, pollIntervalMs } = options
  const { clock } = backOffOptions(options)
  const isMute = openers['1.0'].WEBSOCKET?.lacks?.header !== undefined && (headers ?? credentials) !== undefined
  const isSocket = isSocketAddress(url) && (given?.includes('WEBSOCKET') ?? true) && !isMute
  if (!isSocket || verifyCard || versions || card) {
    const { openByCard } = await import('./open-by-card.ts')
    const openedBy = async (opened: OpenByCard): Promise<OpenAgent> => {
      const { calls, binding, tenant, name, streams, next } = opened
      return {
        calls: await traced(wholeStreams(calls, { streams, clock, pollIntervalMs }), options, { binding, name }),
        binding,
        tenant: { asCard: tenant },
        options: opened.options,
        version: opened.version,
        next: async isStale => openedBy(await next(isStale))
      }
    }
    return openedBy(await openByCard(url, options, isSocket ? ['WEBSOCKET'] : given, openers))
  }
  const placedOptions = credentials ? await (await import('./open-by-card.ts')).placedForSocket(url, options) : options
  const { openSocketCalls } = await import('./transports/websocket/calls.ts')
  const binding = 'WEBSOCKET'
  const calls = await openSocketCalls(url, placedOptions).catch(error => {
    throw explainRefusal(error, placedOptions)
  })
  return {
    calls: await traced(wholeStreams(calls, { streams: true, clock, pollIntervalMs }), options, { binding }),
    binding,
    tenant: 'as given',
    options: placedOptions,
    version: PROTOCOL_VERSION
  }
}

async function traced(calls: Calls, { telemetry }: ConnectOptions, agent: CalledAgent): Promise<Calls> {
  if (!telemetry) return calls
  const { tracedCalls } = await import('./traced-calls.ts')
  return tracedCalls(calls, agent, telemetry)
}

/** The tenant of requests (§8.3.2): from the card, or from the caller if there was no card. */
type TenantRule = { readonly asCard: string | undefined } | 'as given'

/** Adds the tenant to params. Throws InvalidParams if they name another. */
export function withTenant(params: object & { readonly tenant?: unknown }, rule: TenantRule): object {
  if (rule === 'as given') return params
  const { asCard } = rule
  const { tenant = asCard } = params
  if (tenant !== asCard) {
    const description =
      asCard === undefined
        ? "must be left out: the agent's card names none"
        : `must be ${JSON.stringify(asCard)}, as the agent's card says`
    throw invalidParams({ field: 'tenant', description })
  }
  return asCard === undefined ? params : { ...params, tenant: asCard }
}

/** A listener of the connection, and its removal. */
interface Watcher {
  readonly state: LinkState
  readonly listener: () => void
  stop: () => void
}

/**
 * The agent of a client, by the interface in use. If the agent refuses the version of a request, another interface
 * takes its place, and the request is sent there: it was not processed. A stream that has events goes on there.
 */
export class CurrentAgent {
  readonly #watchers = new Set<Watcher>()
  #agent: OpenAgent
  #change: Promise<void> | undefined
  /** The agent whose interface has answered. */
  #proven: OpenAgent | undefined
  /** Agents whose version was refused. Their other calls and streams go on until the client is closed. */
  readonly #former: OpenAgent[] = []

  constructor(agent: OpenAgent) {
    this.#agent = agent
  }

  get agent(): OpenAgent {
    return this.#agent
  }

  /** Runs a call. */
  async call<T>(run: (agent: OpenAgent) => Promise<T>): Promise<T> {
    for (;;) {
      const agent = this.#agent
      try {
        const answer = await run(agent)
        this.#proven = agent
        return answer
      } catch (error) {
        await this.#changeAfter(agent, error)
      }
    }
  }

  /** Runs a call with a stream. Whoever calls the agent notes the events in `progress`, and goes on after them. */
  async *stream(
    progress: StreamProgress,
    run: (agent: OpenAgent, progress: StreamProgress) => AsyncIterable<StreamResponse>
  ): AsyncGenerator<StreamResponse, void> {
    for (;;) {
      const agent = this.#agent
      try {
        for await (const event of run(agent, progress)) {
          this.#proven = agent
          yield event
        }
        return
      } catch (error) {
        // The agent answered with a message, so it has processed the request.
        if (progress.hasEvents && progress.taskId === undefined) throw error
        await this.#changeAfter(agent, error)
        // The events between the two connections may be missing, unless a cursor shows that they are not.
        progress.isWhole = false
      }
    }
  }

  /** Calls `listener` on every change to a state. Returns its removal. */
  on(state: LinkState, listener: () => void): () => void {
    const watcher: Watcher = { state, listener, stop: this.#agent.calls.link.on(state, listener) }
    this.#watchers.add(watcher)
    return () => {
      watcher.stop()
      this.#watchers.delete(watcher)
    }
  }

  async close(): Promise<void> {
    await this.#change
    await Promise.all([...this.#former, this.#agent].map(({ calls }) => calls.link.close()))
  }

  /** Has another interface in use after the agent refused the version of this one. Else throws the error. */
  async #changeAfter(agent: OpenAgent, error: unknown): Promise<void> {
    const { next } = agent
    if (!next || !isA2AError(error) || error.code !== 'VersionNotSupported') throw error
    if (agent !== this.#agent) return
    try {
      await (this.#change ??= this.#replace(agent, next).finally(() => (this.#change = undefined)))
    } catch (cause) {
      throw noOtherVersion(error, agent, cause)
    }
  }

  /** Opens another interface. If that fails, the one in use stays. */
  async #replace(agent: OpenAgent, next: NonNullable<OpenAgent['next']>): Promise<void> {
    const { calls, binding, version } = agent
    const isStale = this.#proven === agent
    const other = await next(isStale)
    warnOf(calls.url)(
      isStale
        ? `It speaks no A2A ${version} over ${binding} any more. The client goes on with ${other.version} over ${other.binding}.`
        : `It refused A2A ${version} over ${binding}, which its card offers. The interface was skipped.`
    )
    this.#former.push(agent)
    this.#agent = other
    for (const watcher of this.#watchers) {
      watcher.stop()
      watcher.stop = other.calls.link.on(watcher.state, watcher.listener)
    }
  }
}

/** The error of an agent that refuses a version, with why nothing else of its card can be used. */
function noOtherVersion(refusal: A2AError, { calls, version }: OpenAgent, cause: unknown): A2AError {
  const why = (cause as Error).message
  return new A2AError(
    'VersionNotSupported',
    `The agent at ${calls.url} refuses A2A ${version}: ${refusal.message} ${why} Its tasks continue.`,
    { metadata: refusal.metadata, cause }
  )
}
