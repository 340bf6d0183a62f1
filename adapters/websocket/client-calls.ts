import { isObject } from '../../machines/protocol/json.ts'
import type { StreamResponse } from '../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION, SERVICE_PARAMETERS } from '../../machines/protocol/uris.ts'
import { fromWireError } from '../../machines/protocol/wire-errors.ts'
import { serviceParameters, type Calls } from '../client/calls.ts'
import { cutOff } from '../client/lost-errors.ts'
import { StreamRequest, UnaryRequest, type ClientRequest, type RequestFrame } from '../client/requests.ts'
import { Link, type LinkOptions, type LinkUser } from './client-link.ts'

/**
 * The calls and streams of one client, told apart by the ids of their requests. When the connection was lost, each is
 * sent again on the next one as it says itself, or fails with an error that says what happened.
 */
export class ClientCalls implements Calls, LinkUser {
  readonly link: Link
  readonly url: string
  readonly #extensions: readonly string[]
  /** What is under way, by the id of its newest frame, and the connection that it was sent on; 0 before it was. */
  readonly #pending = new Map<number, { readonly request: ClientRequest; readonly sentOn: number }>()
  #nextId = 1
  #connection = 0
  /** The id of the ping whose answer tells whether the agent has the reliability extension. */
  #greeting = 0
  #isReliable = false
  #end: { error: unknown } | undefined

  /** `extensions` are activated beside the reliability extension, which always is. */
  constructor(options: LinkOptions, extensions: readonly string[]) {
    this.link = new Link(options, this)
    this.url = options.url
    this.#extensions = extensions
  }

  call(frame: RequestFrame, signal?: AbortSignal): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const abort = () => {
        this.#forget(request)
        reject(signal?.reason)
      }
      const settled = () => signal?.removeEventListener('abort', abort)
      const request = new UnaryRequest(frame, value => (settled(), resolve(value)), error => (settled(), reject(error)))
      signal?.addEventListener('abort', abort, { once: true })
      this.#begin(request)
    })
  }

  async *stream(frame: RequestFrame, signal?: AbortSignal): AsyncGenerator<StreamResponse, void, undefined> {
    signal?.throwIfAborted()
    const stream = new StreamRequest(frame)
    const abort = () => stream.abandon(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    this.#begin(stream)
    try {
      yield* stream
    } finally {
      signal?.removeEventListener('abort', abort)
      this.#leave(stream)
    }
  }

  opened(): void {
    this.#connection += 1
    this.#greeting = this.#nextId
    this.silent()
    this.#sendAgain(({ sentOn }) => sentOn === 0)
  }

  received(text: string): void {
    const frame = parsed(text)
    if (!frame) return
    if (isObject(frame[SERVICE_PARAMETERS])) this.#noteExtensions(frame[SERVICE_PARAMETERS])
    const id = typeof frame.id === 'number' ? frame.id : 0
    if (id === this.#greeting) this.#sendAgain(({ sentOn }) => sentOn !== this.#connection)
    const request = this.#pending.get(id)?.request
    if (!request) return
    const isStream = request instanceof StreamRequest
    if ('error' in frame || 'streamEnd' in frame || !isStream) this.#pending.delete(id)
    if ('error' in frame) request.failed(fromWireError(frame.error))
    else if ('streamEnd' in frame) request.ended()
    else request.result(frame.result)
  }

  /** Asks for a sign of life; the answer also tells whether the agent has the reliability extension. */
  silent(): void {
    this.#write({ id: this.#nextId++, method: 'ping' })
  }

  closed(error: unknown): void {
    this.#end = { error }
    for (const { request } of this.#pending.values()) request.failed(error)
    this.#pending.clear()
  }

  #begin(request: ClientRequest): void {
    if (this.#end) request.failed(this.#end.error)
    else this.#send(request, request.frame)
  }

  /** Sends requests of before this connection: as if for the first time, or where the lost one left off. */
  #sendAgain(which: (pending: { readonly sentOn: number }) => boolean): void {
    for (const [id, pending] of [...this.#pending].filter(([, pending]) => which(pending))) {
      const { request, sentOn } = pending
      this.#pending.delete(id)
      const frame = sentOn === 0 ? request.frame : request.again(this.#isReliable)
      if (frame) this.#send(request, frame)
      else request.failed(cutOff(this.url, request.frame.method))
    }
  }

  /** Sends a request under a new id; without a connection it waits for the next one. */
  #send(request: ClientRequest, frame: RequestFrame): void {
    const { method, params } = frame
    const id = this.#nextId++
    this.#pending.set(id, { request, sentOn: this.link.state === 'open' ? this.#connection : 0 })
    this.#write({ id, method, params }, frame)
  }

  #leave(stream: StreamRequest): void {
    const id = this.#forget(stream)
    if (id !== undefined && stream.isOpenThere) this.#write({ method: 'cancelStream', params: { id } })
  }

  /** Takes a request off the list. Gives its id, if it was there. */
  #forget(forgotten: ClientRequest): number | undefined {
    for (const [id, { request }] of this.#pending) {
      if (request !== forgotten) continue
      this.#pending.delete(id)
      return id
    }
    return undefined
  }

  #write(frame: object, terms?: Pick<RequestFrame, 'parameters' | 'trace'>): void {
    this.link.send(JSON.stringify({ jsonrpc: '2.0', ...frame, [SERVICE_PARAMETERS]: serviceParameters({ extensions: this.#extensions }, terms) }))
  }

  #noteExtensions(parameters: Record<string, unknown>): void {
    const activated = parameters['a2a-extensions']
    if (typeof activated === 'string' && activated.split(',').includes(RELIABILITY_EXTENSION)) this.#isReliable = true
  }
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const frame: unknown = JSON.parse(text)
    return isObject(frame) ? frame : undefined
  } catch {
    return undefined
  }
}
