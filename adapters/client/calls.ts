import type { StreamResponse } from '../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import { PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import type { Clock } from '../../runtime/ports/clock.ts'
import type { AgentGenerations } from './generations.ts'
import type { PlacedOptions } from './options.ts'
import type { RequestFrame } from './requests.ts'
import type { LinkState } from './retries/transport-state.ts'

/** Calls to an agent by method name, in wire JSON. All bindings implement it, and retry after a lost connection. */
export interface Calls {
  readonly url: string
  /** The connection to the agent. `close` ends it for good, with all pending calls; it may be called twice. */
  readonly link: {
    readonly state: LinkState
    on(state: LinkState, watcher: () => void): () => void
    close(): Promise<void>
  }
  /** The generations of the agent, as far as its answers show them. */
  readonly generations: AgentGenerations
  /**
   * Whether the agent has the reliability extension, by its card or by an answer. A WebSocket waits for the first
   * answer.
   */
  isReliable(): Promise<boolean>
  /** Calls a method and resolves with its result. */
  call(frame: RequestFrame, signal?: AbortSignal): Promise<unknown>
  /**
   * Calls a streaming method. The request is sent when the stream is first read; leaving the loop cancels it on both
   * sides.
   */
  stream(frame: RequestFrame, signal?: AbortSignal): AsyncGenerator<StreamResponse, void, undefined>
}

/** A call with a stream, and how it is read. */
export interface StreamContext extends StreamSupport {
  readonly calls: Calls
  readonly frame: RequestFrame
  readonly signal: AbortSignal | undefined
  /** Wakes the waits of all streams, since a call may have changed their tasks. */
  readonly sleepers: Set<() => void>
}

/** How streams are read. */
export interface StreamSupport {
  /** Whether the agent streams. `false`: by its card it does not. */
  readonly streams: boolean
  readonly clock: Clock
  /** The wait between two looks at a task without a stream. Default: it doubles while the task is unchanged. */
  readonly pollIntervalMs?: number | undefined
}

/**
 * The service parameters (§3.2.6) of a request, names in lower case: its own, its trace, the version and the
 * extensions.
 */
export function serviceParameters(
  { extensions = [], version = PROTOCOL_VERSION }: Pick<PlacedOptions, 'extensions' | 'version'>,
  { parameters: own = {}, trace }: Pick<RequestFrame, 'parameters' | 'trace'> = {}
): Record<string, string> {
  const { 'a2a-extensions': more } = own
  const requested = [...new Set([RELIABILITY_EXTENSION, ...extensions])].join(',')
  return {
    'a2a-version': version,
    ...trace,
    ...own,
    'a2a-extensions': more ? `${requested},${more}` : requested
  }
}

/**
 * The service parameters of a request as HTTP headers. A resumed subscription also sends `Last-Event-ID`, as SSE does.
 */
export function httpParameters(frame: RequestFrame, options: PlacedOptions): Record<string, string> {
  const all = serviceParameters(options, frame)
  const cursor = frame.method === 'SubscribeToTask' ? all['taskchart-after-generation'] : undefined
  return cursor === undefined ? all : { ...all, 'last-event-id': cursor }
}

/** The service parameters of a request, with the names of 0.3. */
export function parameters03({
  'a2a-extensions': extensions = '',
  ...others
}: Record<string, string>): Record<string, string> {
  return { ...others, 'a2a-version': '0.3', 'x-a2a-extensions': extensions }
}

/** The extensions that an HTTP response lists as active, under the header name of 1.0 or of 0.3. */
export function activatedBy({ headers }: Response): string | null {
  return headers.get('a2a-extensions') ?? headers.get('x-a2a-extensions')
}
