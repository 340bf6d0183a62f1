import { isObject } from '../../../../machines/protocol/codec/json.ts'
import type { A2AError } from '../../../../machines/protocol/errors.ts'
import type { StreamResponse } from '../../../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION, SERVICE_PARAMETERS } from '../../../../machines/protocol/uris.ts'
import type { NativeVersion } from '../../../../machines/protocol/versions.ts'
import { fromWireError } from '../../../../machines/protocol/wire-errors.ts'
import { type Calls, serviceParameters } from '../../calls.ts'
import { AgentGenerations } from '../../generations.ts'
import { backOffOptions, type PlacedOptions } from '../../options.ts'
import { type ClientRequest, type RequestFrame, StreamRequest, UnaryRequest } from '../../requests.ts'
import { cutOff, inDoubt, mayPass } from '../../retries/lost-errors.ts'
import { BackOff } from '../../retries/transport-state.ts'
import { ReconnectingLink, type LinkOptions, type LinkUser } from './link.ts'
import { openSocket } from './socket.ts'

/** Connects to a `ws:` URL. */
export async function openSocketCalls(url: string, options: PlacedOptions): Promise<ClientCalls> {
  const { extensions = [], signal, version } = options
  const open = async (signal: AbortSignal) => openSocket(url, options, signal)
  const calls = new ClientCalls({ url, open, ...backOffOptions(options) }, extensions, version)
  await calls.link.start(signal)
  return calls
}

/** A pending request. */
interface Pending {
  readonly request: ClientRequest
  /** The number of the connection that its newest frame was sent on; 0 if it was not sent. */
  readonly sentOn: number
  /** An earlier frame lost its connection, and may have reached the agent. */
  readonly wasCut: boolean
  /** The back-off and the timer of a resent request that the agent answered with a temporary error. */
  readonly waits?: BackOff
  readonly timer?: unknown
}

/**
 * The calls and streams of one client over a WebSocket, identified by request id. After a lost connection, each is sent
 * again with the frame from `again`, or fails with an error.
 */
export class ClientCalls implements Calls, LinkUser {
  readonly link: ReconnectingLink
  readonly url: string
  readonly generations: AgentGenerations
  readonly #options: LinkOptions
  readonly #extensions: readonly string[]
  /** Pending requests, by the ids of their newest frames. */
  readonly #pending = new Map<number, Pending>()
  #nextId = 1
  #connection = 0
  /** The id of the ping whose answer shows whether the agent has the reliability extension. */
  #greeting = 0
  #isReliable = false
  /** Resolves when the agent has answered for the first time, or the connection is closed for good. */
  readonly #greeted: Promise<void>
  #onGreeted: (() => void) | undefined
  #end: { error: unknown } | undefined

  /** `extensions` are activated in addition to the reliability extension. `version` is that of the requests. */
  constructor(options: LinkOptions, extensions: readonly string[], version?: NativeVersion) {
    this.link = new ReconnectingLink(options, this)
    this.#options = options
    this.url = options.url
    this.#extensions = extensions
    this.generations = new AgentGenerations(version)
    this.#greeted = new Promise(resolve => (this.#onGreeted = resolve))
  }

  async isReliable(): Promise<boolean> {
    if (!this.#isReliable) await this.#greeted
    return this.#isReliable
  }

  call(frame: RequestFrame, signal?: AbortSignal): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const abort = () => {
        this.#forget(request)
        reject(signal?.reason)
      }
      const settled = () => signal?.removeEventListener('abort', abort)
      const request = new UnaryRequest(
        frame,
        value => (settled(), resolve(value)),
        error => (settled(), reject(error))
      )
      signal?.addEventListener('abort', abort, { once: true })
      this.#begin(request)
    })
  }

  async *stream(frame: RequestFrame, signal?: AbortSignal): AsyncGenerator<StreamResponse, void, undefined> {
    signal?.throwIfAborted()
    const stream = new StreamRequest(frame, this.url, this.generations)
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
    if (id === this.#greeting) {
      this.#onGreeted?.()
      this.#sendAgain(({ sentOn }) => sentOn !== this.#connection)
    }
    const pending = this.#pending.get(id)
    if (!pending) return
    const { request } = pending
    const isStream = request instanceof StreamRequest
    if ('error' in frame || 'streamEnd' in frame || !isStream) this.#pending.delete(id)
    if ('error' in frame) this.#failed(pending, fromWireError(frame.error))
    else if ('streamEnd' in frame) request.ended()
    else request.result(frame.result)
  }

  /** Sends a ping. Its answer also shows whether the agent has the reliability extension. */
  silent(): void {
    this.#write({ id: this.#nextId++, method: 'ping' })
  }

  closed(error: unknown): void {
    this.#end = { error }
    this.#onGreeted?.()
    for (const [id, { request, sentOn }] of this.#pending) {
      this.#drop(id)
      request.failed(sentOn > 0 && request.isOpenQuestion ? inDoubt(error, request.frame.method) : error)
    }
  }

  #begin(request: ClientRequest): void {
    if (this.#end) request.failed(this.#end.error)
    else this.#send(request, request.frame)
  }

  /** Sends requests of earlier connections again: from the start, or where the lost one stopped. */
  #sendAgain(which: (pending: { readonly sentOn: number }) => boolean): void {
    for (const [id, pending] of [...this.#pending].filter(([, pending]) => which(pending))) {
      const { request, sentOn } = pending
      this.#drop(id)
      const frame = sentOn === 0 ? request.frame : request.again(this.#isReliable)
      if (frame) this.#send(request, frame, { wasCut: sentOn !== 0 })
      else request.failed(cutOff(this.url, request.frame.method))
    }
  }

  /** Handles an error of the agent: retries a resent request if the error is temporary, else fails it. */
  #failed({ request, wasCut, sentOn, waits = new BackOff(this.#options) }: Pending, error: A2AError): void {
    const waitMs = wasCut && mayPass(error) ? waits.next(error.retryAfterMs) : undefined
    if (waitMs === undefined)
      return request.failed(wasCut && request.isOpenQuestion ? inDoubt(error, request.frame.method) : error)
    const id = this.#nextId++
    const timer = this.#options.clock.setTimeout(() => {
      // The request is resent on the next connection.
      if (this.link.state !== 'open') return
      this.#drop(id)
      const frame = request.again(this.#isReliable)
      if (frame) this.#send(request, frame, { wasCut, waits })
    }, waitMs)
    this.#pending.set(id, { request, sentOn, wasCut, waits, timer })
  }

  /** Sends a request under a new id. Without a connection, it waits for the next one. */
  #send(
    request: ClientRequest,
    frame: RequestFrame,
    before: Pick<Pending, 'wasCut' | 'waits'> = { wasCut: false }
  ): void {
    const { method, params } = frame
    const id = this.#nextId++
    this.#pending.set(id, { request, sentOn: this.link.state === 'open' ? this.#connection : 0, ...before })
    this.#write({ id, method, params }, frame)
  }

  #leave(stream: StreamRequest): void {
    const id = this.#forget(stream)
    if (id !== undefined && stream.isOpenThere) this.#write({ method: 'cancelStream', params: { id } })
  }

  /** Removes a request. Returns its id, if it was pending. */
  #forget(forgotten: ClientRequest): number | undefined {
    for (const [id, { request }] of this.#pending) {
      if (request !== forgotten) continue
      this.#drop(id)
      return id
    }
    return undefined
  }

  #drop(id: number): void {
    this.#options.clock.clearTimeout(this.#pending.get(id)?.timer)
    this.#pending.delete(id)
  }

  #write(frame: object, parameters?: Pick<RequestFrame, 'parameters' | 'trace'>): void {
    this.link.send(
      JSON.stringify({
        jsonrpc: '2.0',
        ...frame,
        [SERVICE_PARAMETERS]: serviceParameters(
          { extensions: this.#extensions, version: this.generations.version },
          parameters
        )
      })
    )
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
