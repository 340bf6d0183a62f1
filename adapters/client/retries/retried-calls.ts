import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import { onAbort } from '../../../runtime/primitives/event-loop.ts'
import type { Calls } from '../calls.ts'
import { type ClientRequest, type RequestFrame, StreamRequest, UnaryRequest } from '../requests.ts'
import { closedHere } from './lost-errors.ts'
import { type RetryContext, sendWithRetries } from './request-retry.ts'

/** The calls of one client over a binding without a lasting connection: each request is retried separately. */
export class HttpCalls implements Calls {
  readonly url: string
  readonly link: Calls['link']
  readonly generations: Calls['generations']
  readonly #context: RetryContext
  /** Pending requests, as functions that end them with an error. */
  readonly #running = new Set<(error: unknown) => void>()
  #end: { readonly error: unknown } | undefined

  constructor(context: RetryContext) {
    const { link, url, generations } = context.state
    this.url = url
    this.generations = generations
    this.#context = context
    this.link = {
      get state() {
        return link.state
      },
      on: (state, watcher) => link.on(state, watcher),
      close: async () => this.#close()
    }
  }

  async isReliable(): Promise<boolean> {
    return this.#context.state.isReliable
  }

  async call(frame: RequestFrame, signal?: AbortSignal): Promise<unknown> {
    signal?.throwIfAborted()
    return new Promise((resolve, reject) => {
      this.#begin(new UnaryRequest(frame, resolve, reject), signal)
    })
  }

  async *stream(frame: RequestFrame, signal?: AbortSignal): AsyncGenerator<StreamResponse, void, undefined> {
    signal?.throwIfAborted()
    const stream = new StreamRequest(frame, this.url, this.generations)
    const leave = this.#begin(stream, signal)
    try {
      yield* stream
    } finally {
      leave()
    }
  }

  /** Starts a request. Returns a function that cancels it. */
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
    sendWithRetries(request, this.#context, stopping.signal)
      .catch(error => request.failed(error))
      .finally(settle)
    return () => stopping.abort()
  }

  #close(): void {
    if (this.#end) return
    const { transport, state } = this.#context
    const error = closedHere(state.url)
    this.#end = { error }
    for (const stop of this.#running) stop(error)
    transport.close()
    state.link.enter('closed')
  }
}
