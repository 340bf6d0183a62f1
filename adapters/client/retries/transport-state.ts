import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import type { NativeVersion } from '../../../machines/protocol/versions.ts'
import type { Clock } from '../../../runtime/ports/clock.ts'
import { backOffMs } from '../../../runtime/primitives/event-loop.ts'
import { AgentGenerations } from '../generations.ts'

/**
 * The state of a connection: being opened, open, lost and about to be retried, or closed for good. Over HTTP and gRPC
 * each request has its own connection. There the state starts as `open`, and becomes `lost` when a request or a stream
 * is interrupted. It is `connecting` during the retry, and `open` with the next answer to any request.
 */
export type LinkState = 'connecting' | 'open' | 'lost' | 'closed'

/** The state of a connection, with listeners. */
export class LinkWatch {
  readonly #watchers = new Map<LinkState, Set<() => void>>()
  #state: LinkState

  constructor(state: LinkState) {
    this.#state = state
  }

  get state(): LinkState {
    return this.#state
  }

  /** Calls `watcher` on every change to a state. Returns its removal. */
  on(state: LinkState, watcher: () => void): () => void {
    const watchers = this.#watchers.get(state) ?? new Set()
    this.#watchers.set(state, watchers.add(watcher))
    return () => void watchers.delete(watcher)
  }

  /** Changes the state, and calls its listeners. */
  enter(state: LinkState): void {
    this.#state = state
    // Iterates over a copy: a listener that removes and adds itself would be called for ever.
    const watchers = [...(this.#watchers.get(state) ?? [])]
    for (const watcher of watchers) watcher()
  }
}

/** The state of a binding without a lasting connection, derived from its requests. */
export class TransportState {
  readonly url: string
  readonly link = new LinkWatch('open')
  readonly generations: AgentGenerations
  #isReliable: boolean
  #hasAnswered = false

  /** `isReliable`: the agent's card lists the reliability extension. `version` is that of the requests. */
  constructor(url: string, isReliable: boolean, version?: NativeVersion) {
    this.url = url
    this.generations = new AgentGenerations(version)
    this.#isReliable = isReliable
  }

  /** Whether the agent has the reliability extension, by its card or by an answer. */
  get isReliable(): boolean {
    return this.#isReliable
  }

  /** Whether the agent has answered at least once. */
  get hasAnswered(): boolean {
    return this.#hasAnswered
  }

  /** The agent answered. `extensions` is its `A2A-Extensions` header: the active extensions. */
  answered(extensions?: string | null): void {
    this.#hasAnswered = true
    this.#isReliable ||= extensions?.split(',').some(uri => uri.trim() === RELIABILITY_EXTENSION) ?? false
    if (this.link.state !== 'closed' && this.link.state !== 'open') this.link.enter('open')
  }

  /** A request lost its connection. */
  lost(): void {
    if (this.link.state !== 'closed' && this.link.state !== 'lost') this.link.enter('lost')
  }

  /** A lost request is being retried. */
  tried(): void {
    if (this.link.state === 'lost') this.link.enter('connecting')
  }
}

/** The options of a back-off. */
export interface BackOffOptions {
  readonly clock: Clock
  /** A random number from 0 up to 1, for the jitter. */
  readonly random: () => number
  /** How long a lost connection is retried. */
  readonly giveUpAfterMs: number
}

/**
 * The upper bound of the first wait; it doubles up to the maximum. Each wait is random below its bound (full jitter).
 */
const BACK_OFF = { firstMs: 250, longestMs: 10_000 }

/** Exponential back-off with a time limit, for connections to an agent. */
export class BackOff {
  readonly #options: BackOffOptions
  #failures = 0
  #lostAtMs: number | undefined

  constructor(options: BackOffOptions) {
    this.#options = options
  }

  /**
   * The next wait in milliseconds; `undefined` after the time limit. `requestedMs` is the wait that the agent requests:
   * the random wait is added to it. The last attempt is at the time limit at the latest.
   */
  next(requestedMs = 0): number | undefined {
    const { clock, random, giveUpAfterMs } = this.#options
    this.#lostAtMs ??= clock.now()
    const leftMs = this.#lostAtMs + giveUpAfterMs - clock.now()
    if (leftMs <= 0) return undefined
    this.#failures += 1
    return Math.min(requestedMs, leftMs) + random() * backOffMs(this.#failures, BACK_OFF)
  }

  /** Starts over after a success. */
  reset(): void {
    this.#failures = 0
    this.#lostAtMs = undefined
  }
}
