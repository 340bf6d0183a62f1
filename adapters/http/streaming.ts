import { isA2AError } from '../../machines/protocol/errors.ts'
import type { AnswerSpace } from '../../runtime/access/shares.ts'
import type { Clock } from '../../runtime/ports/clock.ts'
import { roundEnd } from '../../runtime/primitives/event-loop.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { eachOf, EVENTS_PER_ROUND, type ReadResult } from '../../runtime/streams/task-stream.ts'
import { credentialsExpiredError } from '../entry/admission.ts'
import { LightResponse, type AnswerHeaders } from '../entry/answers.ts'
import { disconnectSignal, type NodeResponse } from '../entry/connection.ts'
import { RESPONSE_ALREADY_SENT } from '../entry/small-request.ts'
import type { HttpCall, EventStreamOptions } from './call.ts'
import { BodySink, EventStream, NodeResponseSink, sentError, sentEvent, sentPieces } from './event-stream.ts'

/** How a binding serialises an event, and an error that ends the stream. Both have no line breaks. */
export interface Encoding {
  readonly encode: (event: object) => string
  /** Encodes a large event, in pieces. */
  readonly encodeLarge: (event: object) => Iterable<string>
  readonly encodeError: (error: unknown) => string
  /** The name of the event of an error. Default none. */
  readonly errorName?: string
}

type Events = AsyncGenerator<object, void, undefined>

/** The time that the first event may take before the response begins without it. */
const FIRST_EVENT_MS = 1000

/**
 * Answers with a stream of server-sent events, each with its generation as `id`. Rejects with an error that occurs
 * before the first event, for an ordinary answer. A stream ends with Unauthenticated when the credentials of its
 * request expire.
 */
export async function streamAnswer(
  { settings: { clock } }: ServedRuntime,
  call: HttpCall,
  open: (options: EventStreamOptions) => Events,
  encoding: Encoding
): Promise<Response> {
  const { expiresAtMs = Infinity } = call.caller.principal ?? {}
  const end = endOf(call.served, expiresAtMs)
  let generation: number | undefined
  // A client that disconnects before the first event is noticed when the response begins.
  const events = open({ signal: end.signal, onGeneration: number => void (generation = number) })
  const first = events.next()
  await early(first, clock)
  const expiry =
    expiresAtMs < Infinity
      ? clock.setTimeout(() => end.abort(credentialsExpiredError()), expiresAtMs - clock.now())
      : undefined
  const { response, stream } = begun(call, clock, () => end.abort())
  const encode = (event: object) => sentEvent(encoding.encode(event), generation)
  const encodeFirst = (event: object) => call.space?.sent(sentPieces(encoding.encodeLarge(event), generation))
  void sendEvents(first, events, stream, { encode, encodeFirst }, () => end.signal.reason)
    .catch((error: unknown) => stream.send(sentError(encoding.encodeError(error), encoding.errorName)))
    .finally(() => {
      call.space?.end()
      clock.clearTimeout(expiry)
      stream.end()
      void events.return()
    })
  return response
}

/**
 * Ends a stream when its client disconnects or its credentials expire. Without an expiry, the connection's signal is
 * enough.
 */
function endOf({ direct }: NodeResponse, expiresAtMs: number): Pick<AbortController, 'signal' | 'abort'> {
  return direct && expiresAtMs === Infinity
    ? { signal: disconnectSignal(direct.socket), abort: () => {} }
    : new AbortController()
}

/** A stream whose events another library writes. */
export interface PassedStream {
  readonly response: Response
  /** Whether the client has not read all of it yet. A writer then leaves out what the client can do without. */
  readonly isBehind: () => boolean
}

/**
 * Passes on the server-sent events of a body, as fast as the client reads. `left` is called when the client disconnects
 * before the end; one that reads nothing is disconnected.
 */
export function passEvents(
  { settings: { clock } }: ServedRuntime,
  call: HttpCall,
  events: ReadableStream<Uint8Array>,
  left: () => void
): PassedStream {
  const { response, stream } = begun(call, clock, left)
  const decoder = new TextDecoder()
  const pass = async () => {
    for await (const bytes of events) {
      if (!stream.isOpen) return
      stream.send(decoder.decode(bytes, { stream: true }))
      await stream.drained
    }
  }
  const end = () => {
    call.space?.end()
    stream.end()
  }
  void pass().then(end, end)
  return { response, isBehind: () => stream.drained !== undefined }
}

/** Begins the response of a stream. */
function begun(
  { headers, served: { direct, outgoing } }: HttpCall,
  clock: Clock,
  left: () => void
): { response: Response; stream: EventStream } {
  const all = {
    'Content-Type': 'text/event-stream',
    'Cache-Control': 'no-cache',
    'X-Accel-Buffering': 'no',
    ...headers
  }
  return responseOf({ direct, outgoing }, all, clock, left, true)
}

function responseOf(
  { direct, outgoing }: NodeResponse,
  headers: AnswerHeaders,
  clock: Clock,
  left: () => void,
  allowsComments: boolean
): { response: Response; stream: EventStream } {
  if (direct)
    return {
      response: RESPONSE_ALREADY_SENT,
      stream: new EventStream(new NodeResponseSink(direct, headers), clock, left, allowsComments)
    }
  const sink = new BodySink(outgoing && (() => void outgoing.destroy()))
  return {
    response: new LightResponse(sink.body, { headers }),
    stream: new EventStream(sink, clock, left, allowsComments)
  }
}

/**
 * Answers with JSON text in pieces, as fast as the client reads. A client that reads nothing is disconnected, as from a
 * stream.
 */
export function inPieces(
  { settings: { clock } }: ServedRuntime,
  { served }: HttpCall,
  space: AnswerSpace,
  pieces: Iterable<string>,
  headers: AnswerHeaders
): Response {
  const { response, stream } = responseOf(
    served,
    { 'Content-Type': 'application/json', ...headers },
    clock,
    () => {},
    false
  )
  void stream.sendPieces(space.sent(pieces)).then(() => stream.end())
  return response
}

/** Waits a short time for the first event: the client should soon know that its stream is open. */
async function early(first: Promise<unknown>, clock: Clock): Promise<void> {
  let timer: unknown
  const late = new Promise<void>(resolve => (timer = clock.setTimeout(resolve, FIRST_EVENT_MS)))
  try {
    await Promise.race([first, late])
  } finally {
    clock.clearTimeout(timer)
  }
}

/** Serialises the events of a stream: the first in pieces if it is large. */
interface Encoders {
  readonly encode: (event: object) => string
  readonly encodeFirst: (event: object) => Iterable<string> | undefined
}

/**
 * Sends every event, until the last or until the client disconnects. Throws `reason` if it is an A2AError that stopped
 * the events.
 */
async function sendEvents(
  first: ReturnType<Events['next']>,
  events: Events,
  stream: EventStream,
  { encode, encodeFirst }: Encoders,
  reason: () => unknown
): Promise<void> {
  let sent = 0
  const see = (event: object): ReadResult => {
    if (!stream.isOpen) return false
    stream.send(encode(event))
    sent += 1
    return stream.drained ?? (sent % EVENTS_PER_ROUND === 0 ? roundEnd() : undefined)
  }
  const { done, value } = await first
  const pieces = done ? undefined : encodeFirst(value)
  if (pieces) await stream.sendPieces(pieces)
  if (!done && (pieces || (await see(value)) !== false)) await eachOf(events, see)
  if (isA2AError(reason())) throw reason()
}
