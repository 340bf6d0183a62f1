import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import { onAbort } from '../../../runtime/primitives/promises.ts'
import type { Calls } from '../calls.ts'
import { StreamRequest, UnaryRequest, type ClientRequest, type RequestFrame } from '../requests.ts'
import { closedHere } from './lost-errors.ts'
import { carryThrough, type Means } from './request-retry.ts'

/** The calls and streams of one client over a binding on which each request finds its own way. */
export class CarriedCalls implements Calls {
  readonly url: string
  readonly link: Calls['link']
  readonly #means: Means
  /** What is under way: how to end it with an error. */
  readonly #running = new Set<(error: unknown) => void>()
  #end: { readonly error: unknown } | undefined

  constructor(means: Means) {
    const { link, url } = means.way
    this.url = url
    this.#means = means
    this.link = {
      get state() {
        return link.state
      },
      on: (state, watcher) => link.on(state, watcher),
      close: async () => this.#close()
    }
  }

  async call(frame: RequestFrame, signal?: AbortSignal): Promise<unknown> {
    signal?.throwIfAborted()
    return new Promise((resolve, reject) => {
      this.#begin(new UnaryRequest(frame, resolve, reject), signal)
    })
  }

  async *stream(frame: RequestFrame, signal?: AbortSignal): AsyncGenerator<StreamResponse, void, undefined> {
    signal?.throwIfAborted()
    const stream = new StreamRequest(frame)
    const leave = this.#begin(stream, signal)
    try {
      yield* stream
    } finally {
      leave()
    }
  }

  /** Starts to carry a request. The answer lets go of it. */
  #begin(request: ClientRequest, signal: AbortSignal | undefined): () => void {
    const stopping = new AbortController()
    if (this.#end) {
      request.failed(this.#end.error)
      return () => {}
    }
    const stop = (error: unknown) => {
      stopping.abort(error)
      request.failed(error)
    }
    const unwatch = signal && onAbort(signal, () => stop(signal.reason))
    this.#running.add(stop)
    const settle = () => {
      unwatch?.()
      this.#running.delete(stop)
    }
    carryThrough(request, this.#means, stopping.signal).catch(error => request.failed(error)).finally(settle)
    return () => stopping.abort()
  }

  #close(): void {
    if (this.#end) return
    const { carrier, way } = this.#means
    const error = closedHere(way.url)
    this.#end = { error }
    for (const stop of this.#running) stop(error)
    carrier.close()
    way.link.enter('closed')
  }
}
