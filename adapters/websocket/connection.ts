import type { Socket } from 'node:net'
import type { AgentInterface } from '../../machines/protocol/card.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import { IncompleteBytes, sharerKeyOf } from '../../runtime/access/shares.ts'
import { ReleasingMap } from '../../runtime/primitives/collections.ts'
import { catchErrors, onReceived, roundEnd } from '../../runtime/primitives/event-loop.ts'
import { killPoint } from '../../runtime/primitives/kill-points.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { eachOf, EVENTS_PER_ROUND, type ReadResult } from '../../runtime/streams/task-stream.ts'
import { connectionName, sharedAbort, type Tap } from '../entry/connection.ts'
import {
  encodeOnce,
  type Envelope,
  errorFrame,
  type Method,
  type Methods,
  noSuchMethod,
  readEnvelope,
  type RequestId,
  resultFrame,
  streamEndFrame
} from '../json-rpc/dispatch.ts'
import {
  callParameters,
  type CallParameters,
  plainParameters,
  traceParameters
} from '../json-rpc/service-parameters.ts'
import { Call, type ConnectionOfCalls } from './call.ts'
import { CLOSE_CODES } from './close-codes.ts'
import type { ConnectionOptions } from './handshake.ts'
import {
  FrameRate,
  FrameWatch,
  Inbox,
  ReadPause,
  readWholeFrames,
  type ReceivedFrame,
  Refusals,
  tooFast
} from './incoming-frames.ts'
import { LargeAnswers } from './large-answer.ts'
import { Outbox, type ServedSocket } from './outbox.ts'

/** The data that all connections of a server share. */
interface Serving {
  readonly runtime: ServedRuntime
  readonly methods: Methods
  /** The interfaces of the agent, for its extended card. */
  readonly interfaces: readonly AgentInterface[]
  readonly tap?: Tap | undefined
}

type Request = Extract<Envelope, { kind: 'request' }>

/** The number of responses, which are meaningless from a client, before its connection is closed. */
const UNEXPECTED_RESPONSES = 10

/** The maximum pause in the middle of a frame. */
const UNFINISHED_MS = 30_000

/** One client's WebSocket: decodes frames, performs calls and streams, and sends their frames. */
export class Connection {
  readonly #runtime: ServedRuntime
  readonly #methods: Methods
  readonly #socket: ServedSocket
  readonly #options: ConnectionOptions
  /** The parameters of requests without service parameters. */
  readonly #defaultParameters: CallParameters
  readonly #calls: ConnectionOfCalls
  readonly #readPause: ReadPause
  readonly #inbox: Inbox
  readonly #outbox: Outbox
  readonly #tap: Tap | undefined
  readonly #name: string
  readonly #rate: FrameRate
  readonly #expiresAtMs: number
  readonly #expiry: unknown
  readonly #frames = new FrameWatch()
  readonly #incompleteBytes: IncompleteBytes
  #unfinishedTimer: unknown
  readonly #refusals: Refusals
  /** The pending requests by their ids. */
  readonly #inFlight = new ReleasingMap<Call, RequestId>()
  /** Aborts when the client disconnects. Made for the first call. */
  #disconnected: AbortController | undefined
  #streams = 0
  #unexpectedResponses = 0

  constructor(
    { runtime, methods, interfaces, tap }: Serving,
    socket: ServedSocket,
    stream: Socket,
    options: ConnectionOptions
  ) {
    this.#runtime = runtime
    this.#methods = methods
    this.#socket = socket
    this.#options = options
    this.#defaultParameters =
      options.extensions === ''
        ? plainParameters(options.version)
        : callParameters(new Map(), options, runtime.settings.extensions)
    const { tenant, principal } = options
    const connection = {}
    const owner = runtime.settings.ownerOf(principal, tenant)
    this.#incompleteBytes = new IncompleteBytes(runtime.settings.unfinished, owner)
    const { clock, limits } = runtime.settings
    this.#tap = tap
    this.#name = tap ? connectionName('ws') : ''
    this.#readPause = new ReadPause(socket)
    const fail = (error: unknown) => {
      runtime.settings.logger.error('a frame could not be handled, so its connection is closed', { error })
      socket.terminate()
    }
    this.#inbox = new Inbox({
      reading: runtime.settings.scheduler.reading,
      user: sharerKeyOf(owner, connection),
      connection,
      readPause: this.#readPause,
      read: catchErrors(frame => this.#read(frame), fail)
    })
    this.#outbox = new Outbox(
      socket,
      stream,
      this.#readPause,
      clock,
      tap && (frame => tap.onFrame?.(this.#name, 'out', frame))
    )
    this.#calls = {
      caller: { connection, tenant, principal: principal?.id, claims: principal?.claims },
      interfaces,
      largeAnswers: new LargeAnswers(this.#outbox, runtime.settings.largeAnswers, { user: connection, ...owner })
    }
    this.#refusals = new Refusals(this.#readPause, clock)
    this.#rate = new FrameRate(limits.framesPerSecond)
    this.#expiresAtMs = options.principal?.expiresAtMs ?? Infinity
    this.#expiry = clock.setTimeout(() => this.#expire(), this.#expiresAtMs - clock.now())
    const add = (data: Buffer | string, bytes: number, isBinary: boolean, mayWait: boolean) =>
      this.#inbox.add({ data, bytes, isBinary, rate: this.#rate.count(clock.now()) }, mayWait)
    readWholeFrames(stream, {
      watch: this.#frames,
      most: limits.messageBytes,
      read: (text, bytes) => add(text, bytes, false, true),
      before: () => this.#inbox.readWaiting(),
      arrived: rest => this.#watchFrame(rest),
      fail
    })
    // These may not wait: a following close frame may end the connection before the end of this round.
    onReceived(socket, 'message', (data: Buffer, isBinary: boolean) => add(data, data.length, isBinary, false), fail)
    socket.on('close', () => this.#closed())
    // ws itself closes a connection that violates RFC 6455, with the right code.
    socket.on('error', () => {})
  }

  #read({ data, bytes, isBinary, rate }: ReceivedFrame): void {
    this.#countUnread()
    if (this.#socket.readyState !== this.#socket.OPEN) return
    killPoint('frame received')
    if (isBinary) return this.#socket.close(CLOSE_CODES.textOnly, 'Frames have to be text.')
    const { limits, jsonLimits, clock } = this.#runtime.settings
    if (rate === 'tooLong') return this.#socket.close(CLOSE_CODES.tooFast, 'Too many frames a second.')
    const text = typeof data === 'string' ? data : data.toString('utf8')
    this.#tap?.onFrame?.(this.#name, 'in', text)
    const envelope = readEnvelope(text, jsonLimits)
    if (clock.now() >= this.#expiresAtMs) {
      if (envelope.kind === 'request') this.#outbox.send(errorFrame(envelope.id, expired()))
      return this.#expire()
    }
    switch (envelope.kind) {
      case 'request':
        return rate === 'within'
          ? this.#begin(envelope, bytes)
          : this.#refuse(envelope.id, tooFast(limits.framesPerSecond), bytes, envelope.params)
      case 'notification':
        this.#count(bytes)
        return envelope.method === 'cancelStream' ? this.#cancelStream(envelope.params) : undefined
      case 'response':
        this.#count(bytes)
        return this.#noteResponse()
      case 'invalid':
        return this.#refuse(envelope.id, envelope.error, bytes)
    }
  }

  /** Starts a request if it is allowed. Does not wait for it, so that requests never wait for each other. */
  #begin(request: Request, bytes: number): void {
    const { id, method } = request
    if (method === 'ping') {
      this.#count(bytes)
      return this.#outbox.send(resultFrame(id, '{}', this.#parametersOf(request).activated))
    }
    const parameters = this.#parametersOf(request)
    const called = this.#methods(method, parameters.version)
    const refusal = this.#refusal(id, called?.streaming ?? false)
    if (!called || refusal)
      return this.#refuse(id, refusal ?? noSuchMethod(method, parameters.version), bytes, request.params)
    const {
      settings: { telemetry }
    } = this.#runtime
    const traced = telemetry && traceParameters(telemetry, request.serviceParameters, 'WEBSOCKET')
    const stop = called.streaming ? sharedAbort() : undefined
    const call = new Call(this.#calls, {
      id,
      parameters,
      bytes,
      signal: stop?.signal ?? (this.#disconnected ??= sharedAbort()).signal,
      stop,
      traced
    })
    this.#inFlight.set(id, call)
    if (called.streaming) {
      this.#streams += 1
      return void this.#stream(call, called, request.params)
    }
    called
      .answer(request.params, call)
      .then(answer => this.#answer(call, answer))
      .catch((error: unknown) => this.#fail(call, error))
  }

  /** Sends an answer: without a promise, unless it is large or its client is slow. */
  #answer(call: Call, answer: unknown): Promise<void> | undefined {
    this.#refusals.forget()
    if (this.#outbox.drained || call.large) return this.#answerLater(call, answer)
    if (!call.signal.aborted) this.#sendResult(call, answer)
    killPoint('caller answered')
    this.#end(call)
    return undefined
  }

  async #answerLater(call: Call, answer: unknown): Promise<void> {
    while (this.#outbox.drained) await this.#outbox.drained
    if (call.large) await call.large.send(answer)
    else if (!call.signal.aborted) this.#sendResult(call, answer)
    killPoint('caller answered')
    this.#end(call)
  }

  #sendResult(call: Call, answer: unknown): void {
    const { head, end } = call.resultTexts()
    this.#outbox.sendJoined(head, JSON.stringify(answer), end)
  }

  #fail(call: Call, error: unknown): void {
    const { id, signal } = call
    if (isA2AError(error) && error.metadata['quota'] !== undefined) this.#refusals.note()
    this.#outbox.send(signal.aborted ? streamEndFrame(id) : errorFrame(id, error))
    this.#end(call)
  }

  #end(call: Call): void {
    const { id, stop } = call
    call.end()
    this.#streams -= stop ? 1 : 0
    this.#inFlight.delete(id)
  }

  /** Answers a request that reaches no operation: with this error, or with RateLimited if it is over a quota. */
  #refuse(id: RequestId | null, error: A2AError, bytes: number, params?: unknown): void {
    const answered = this.#runtime.settings.rejected.answerTo(error, { ...this.#calls.caller, bytes }, params)
    if (answered.metadata['quota'] !== undefined) this.#refusals.note()
    this.#outbox.send(errorFrame(id, answered))
  }

  /** Counts a frame that gets no answer. */
  #count(bytes: number): void {
    if (this.#runtime.settings.rejected.count({ ...this.#calls.caller, bytes })) this.#refusals.note()
  }

  /** The parameters of a request, with the extensions that it activates. */
  #parametersOf({ serviceParameters }: Request): CallParameters {
    return serviceParameters.size === 0
      ? this.#defaultParameters
      : callParameters(serviceParameters, this.#options, this.#runtime.settings.extensions)
  }

  async #stream(call: Call, method: Method & { readonly streaming: true }, params: object): Promise<void> {
    const { id, signal } = call
    const { head, end } = call.resultTexts()
    let sent = 0
    const send = (event: object): ReadResult => {
      if (signal.aborted) return false
      // Many streams of a connection may send events in one round of the event loop.
      // A promise must not give false. If the signal aborts meanwhile, the next event ends the stream.
      if (this.#outbox.drained) return this.#outbox.drained.then(() => send(event) || undefined)
      const sending = sent === 0 ? call.large?.send(event) : undefined
      sent += 1
      if (sending) return sending
      this.#outbox.sendJoined(head, encodeOnce(event), end, 'next round')
      return this.#outbox.drained ?? (sent % EVENTS_PER_ROUND === 0 ? roundEnd() : undefined)
    }
    try {
      await eachOf(method.events(params, call), send)
      this.#outbox.send(streamEndFrame(id), 'next round')
      this.#end(call)
    } catch (error) {
      this.#fail(call, error)
    }
  }

  /** The error if a request may not start now. */
  #refusal(id: RequestId, streaming: boolean): A2AError | undefined {
    if (this.#inFlight.has(id))
      return new A2AError(
        'InvalidRequest',
        `A request with the id ${JSON.stringify(id)} is in progress on this connection.`
      )
    const { callsPerConnection, streamsPerConnection } = this.#runtime.settings.limits
    const open = streaming ? this.#streams : this.#inFlight.size - this.#streams
    const limit = streaming ? streamsPerConnection : callsPerConnection
    if (open < limit) return undefined
    return new A2AError(
      'RateLimited',
      `This connection has ${limit} ${streaming ? 'streams' : 'calls'} in progress, which is its limit. Wait for one to end.`,
      { retryAfterMs: 1000 }
    )
  }

  /** Ends a stream for its client; the task continues. Unknown ids are ignored. */
  #cancelStream(params: unknown): void {
    const id = isObject(params) ? params.id : undefined
    if (typeof id === 'string' || typeof id === 'number') this.#inFlight.get(id)?.stop?.abort()
  }

  #noteResponse(): void {
    if (++this.#unexpectedResponses >= UNEXPECTED_RESPONSES)
      this.#socket.close(CLOSE_CODES.policy, 'A client sends requests, not responses.')
  }

  /**
   * Closes the connection if a frame remains incomplete, or if there is no memory for it: then the rest is not read.
   */
  #watchFrame(bytes: Buffer | undefined): void {
    const { clock } = this.#runtime.settings
    clock.clearTimeout(this.#unfinishedTimer)
    const isWithin = bytes && this.#frames.follow(bytes)
    const full = this.#countUnread()
    if (full) this.#socket.close(CLOSE_CODES.tryAgainLater, full.message)
    if (full) return this.#readPause.pause('no room')
    if (isWithin)
      this.#unfinishedTimer = clock.setTimeout(
        () => this.#socket.close(CLOSE_CODES.unfinished, 'A frame was not completed in time.'),
        UNFINISHED_MS
      )
  }

  /** Counts the received bytes that are not parsed. Returns the error if there is no memory for them. */
  #countUnread(): A2AError | undefined {
    return this.#incompleteBytes.count(this.#frames.messageBytes + this.#inbox.bytes)
  }

  /** Ends every pending request when the credentials expire. */
  #expire(): void {
    for (const { id } of this.#inFlight.values()) this.#outbox.send(errorFrame(id, expired()))
    this.#socket.close(CLOSE_CODES.unauthenticated, 'The credentials have expired.')
  }

  /** Ends calls and streams when the client disconnects; tasks continue. */
  #closed(): void {
    const { clock } = this.#runtime.settings
    clock.clearTimeout(this.#expiry)
    clock.clearTimeout(this.#unfinishedTimer)
    this.#inbox.clear()
    this.#incompleteBytes.count(0)
    this.#refusals.end()
    this.#disconnected?.abort()
    for (const { stop } of this.#inFlight.values()) stop?.abort()
  }
}

function expired(): A2AError {
  return new A2AError(
    'Unauthenticated',
    'The credentials of this connection have expired. Connect again with fresh ones.'
  )
}
