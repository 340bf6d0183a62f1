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
