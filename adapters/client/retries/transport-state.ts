import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'

/**
 * How the way to an agent stands: being made, for the first time or again; there; lost, and to be made again; at its
 * end. Over HTTP and gRPC, where each request finds its own way, it is `open` from the beginning, `lost` once a request
 * or a stream was cut off, `connecting` while that is tried again, and `open` with the next answer to any request.
 */
export type LinkState = 'connecting' | 'open' | 'lost' | 'closed'

/** The state of a link, for those who want to hear of it. */
export class LinkWatch {
  readonly #watchers = new Map<LinkState, Set<() => void>>()
  #state: LinkState

  constructor(state: LinkState) {
    this.#state = state
  }

  get state(): LinkState {
    return this.#state
  }

  /** Hears when the link comes into a state. The answer stops that. */
  on(state: LinkState, watcher: () => void): () => void {
    const watchers = this.#watchers.get(state) ?? new Set()
    this.#watchers.set(state, watchers.add(watcher))
    return () => void watchers.delete(watcher)
  }

  /** Comes into a state, and tells those who wait for it. */
  enter(state: LinkState): void {
    this.#state = state
    // A copy: a watcher that goes and comes back would hear it again and again.
    const watchers = [...(this.#watchers.get(state) ?? [])]
    for (const watcher of watchers) watcher()
  }
}

/** The way to an agent, as far as it is known from the requests that went it. */
export class TransportState {
  readonly url: string
  readonly link = new LinkWatch('open')
  #isReliable: boolean
  #hasAnswered = false

  /** `isReliable`: the agent's card says that it has the reliability extension. */
  constructor(url: string, isReliable: boolean) {
    this.url = url
    this.#isReliable = isReliable
  }

  /** Whether the agent has the reliability extension, by its card or by an answer. */
  get isReliable(): boolean {
    return this.#isReliable
  }

  /** Whether the agent ever answered. */
  get hasAnswered(): boolean {
    return this.#hasAnswered
  }

  /** The agent answers; `extensions` are those that are active, as `A2A-Extensions` lists them. */
  answered(extensions?: string | null): void {
    this.#hasAnswered = true
    this.#isReliable ||= extensions?.split(',').some(uri => uri.trim() === RELIABILITY_EXTENSION) ?? false
    if (this.link.state !== 'closed' && this.link.state !== 'open') this.link.enter('open')
  }

  /** A request was cut off. */
  lost(): void {
    if (this.link.state !== 'closed' && this.link.state !== 'lost') this.link.enter('lost')
  }

  /** What was cut off is tried again. */
  tried(): void {
    if (this.link.state === 'lost') this.link.enter('connecting')
  }
}
