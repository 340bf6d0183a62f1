import { createParser } from 'eventsource-parser'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import { A2AError, type ErrorCode } from '../../../machines/protocol/errors.ts'
import { fromWireError } from '../../../machines/protocol/wire-errors.ts'
import { systemClock } from '../../../runtime/ports/clock.ts'
import { onAbort } from '../../../runtime/primitives/event-loop.ts'
import { hostAddress } from '../hosts.ts'
import { type ConnectOptions, currentAddress, type PlacedOptions } from '../options.ts'
import { changesNothing, type RequestFrame } from '../requests.ts'
import { ConnectionLost, nobodyAnswers } from '../retries/lost-errors.ts'

/** Receives the answer to one request. */
export interface ResponseReceiver {
  /** The agent answered. `extensions` is its `A2A-Extensions` header: the active extensions. */
  answered(extensions?: string | null): void
  /** The result, or an event of a stream. */
  result(value: unknown): void
  /** The stream has certainly ended. A stream that stops without this may have been interrupted. */
  ended(): void
}

/** Sends single requests to an agent, without retries. Implemented by each binding without a lasting connection. */
export interface AgentTransport {
  /**
   * Sends a request and passes its answer to `receiver` until it ends. Throws ConnectionLost if the connection fails,
   * and A2AError for the agent's errors and invalid answers. Errors after `signal` aborted are ignored.
   */
  send(frame: RequestFrame, receiver: ResponseReceiver, signal: AbortSignal): Promise<void>
  /** Closes the connections that are kept between requests. */
  close(): void
}

/** Codes of Node errors that occur before anything is sent. */
const UNSENT =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_.*|CERT_.*|DEPTH_ZERO_.*|SELF_SIGNED_.*|UNABLE_TO_.*)$/

/**
 * Sends a request and resolves with the response, of any status, when its headers arrive. Throws ConnectionLost without
 * a response. Throws InvalidAgentResponse for anything but HTTP, and for a redirect: following it could send
 * credentials to another origin. A call that changes nothing follows 307 and 308 within the origin. Throws TypeError
 * for headers that HTTP cannot carry. Credentials in the query are not in the URL of the response, nor in errors. No
 * time limits the answer: only the signal ends the wait.
 */
export async function sendRequest(
  url: string,
  init: RequestInit,
  options: PlacedOptions = {},
  method?: string
): Promise<Response> {
  return answerFrom(url, { init, options, url, isRead: method !== undefined && changesNothing(method) }, 0)
}

/** The most redirects of one request. */
const MOST_REDIRECTS = 5

interface Sending {
  readonly init: RequestInit
  readonly options: PlacedOptions
  /** The URL before any redirect. */
  readonly url: string
  readonly isRead: boolean
}

async function answerFrom(place: string, sending: Sending, redirects: number): Promise<Response> {
  const { init, options, url, isRead } = sending
  const address = currentAddress(place, options)
  const request = new Request(address, { ...init, redirect: 'manual' })
  const response = await fetch(request, unlimited()).catch(cause => {
    init.signal?.throwIfAborted()
    throw connectionFailure(cause, url)
  })
  if (address !== url) Object.defineProperty(response, 'url', { value: url })
  if (response.type !== 'opaqueredirect' && (response.status < 300 || response.status > 399)) return response
  discard(response)
  const target = targetOf(response, place, options)
  const isMoved = target?.origin === new URL(url).origin && (response.status === 307 || response.status === 308)
  if (target && isMoved && isRead && redirects < MOST_REDIRECTS) return answerFrom(target.href, sending, redirects + 1)
  const to = target ? JSON.stringify(target.href.slice(0, 256)) : 'another place'
  const advice =
    target && isMoved
      ? `The agent's card has to name ${to}: only calls that change nothing follow, ${MOST_REDIRECTS} times.`
      : 'Connect to the address that it moved to.'
  throw new A2AError('InvalidAgentResponse', `The agent at ${url} redirects to ${to}, which is not followed. ${advice}`)
}

/** Where a response redirects to, without the credentials in the query, which the agent may repeat. */
function targetOf(response: Response, place: string, { places = [] }: PlacedOptions): URL | undefined {
  const to = response.headers.get('location') ?? ''
  if (to === '' || !URL.canParse(to, place)) return undefined
  const target = new URL(to, place)
  for (const { carrier, name } of places) if (carrier === 'query') target.searchParams.delete(name)
  return target
}

/**
 * The options of `fetch` in Node, which otherwise gives up after 300 seconds without a byte: its global dispatcher,
 * wrapped and not changed. It has another name since undici 8. Elsewhere there is none.
 */
function unlimited(): object {
  const { process } = globalThis as { readonly process?: Partial<Pick<NodeJS.Process, 'versions'>> }
  const isNew = Number.parseInt(process?.versions?.undici ?? '', 10) >= 8
  const dispatcher = Reflect.get(globalThis, Symbol.for(`undici.globalDispatcher.${1 + Number(isNew)}`)) as
    | Dispatcher
    | undefined
  if (!dispatcher) return {}
  const dispatch: Dispatcher['dispatch'] = (request, handler) =>
    dispatcher.dispatch({ ...request, headersTimeout: 0, bodyTimeout: 0 }, handler)
  return { dispatcher: Object.create(dispatcher, { dispatch: { value: dispatch } }) }
}

interface Dispatcher {
  dispatch(request: object, handler: unknown): boolean
}

/** The wait for an answer to HEAD. Most connections that are refused are so at once. */
const LOOK_MS = 1000

/**
 * The error of an address where a connection or its TLS handshake is refused; `undefined` if there is no refusal within
 * a second. Sends HEAD without credentials, which changes nothing, and whose answer does not matter.
 */
export async function unreachable(
  address: string,
  { clock = systemClock, signal }: Pick<ConnectOptions, 'clock' | 'signal'>
): Promise<A2AError | undefined> {
  const stop = new AbortController()
  const timer = clock.setTimeout(() => stop.abort(), LOOK_MS)
  const unwatch = signal && onAbort(signal, () => stop.abort())
  try {
    await sendRequest(hostAddress(address), { method: 'HEAD', signal: stop.signal })
  } catch (error) {
    if (error instanceof ConnectionLost && error.isUnsent) return nobodyAnswers(address, error.cause)
  } finally {
    clock.clearTimeout(timer)
    unwatch?.()
  }
  return undefined
}

function connectionFailure(error: unknown, url: string): unknown {
  const { cause = error } = error as { cause?: unknown }
  const code = codeOf(cause)
  if (cause instanceof Error && cause.name === 'HTTPParserError')
    return new A2AError('InvalidAgentResponse', `The server at ${url} does not speak HTTP.`, { cause })
  return new ConnectionLost(code === '' ? 'no answer' : code, { isUnsent: UNSENT.test(code), cause })
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : ''
}

/** The maximum length of an answer. */
const LONGEST_ANSWER_BYTES = 64 * 1024 * 1024

/**
 * Reads a response as text. Throws ConnectionLost if it is interrupted, InvalidAgentResponse beyond `most` bytes, by
 * default 64 MiB.
 */
export async function wholeBody(response: Response, most = LONGEST_ANSWER_BYTES): Promise<string> {
  let text = ''
  let bytes = 0
  const decoder = new TextDecoder()
  for await (const chunk of chunksOf(response)) {
    bytes += chunk.length
    if (bytes > most)
      throw new A2AError('InvalidAgentResponse', `The answer from ${response.url} is longer than ${most} bytes.`)
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}

/** The chunks of a body. Throws ConnectionLost if it is interrupted; leaving the loop ends the request. */
export async function* chunksOf({ body }: Response): AsyncGenerator<Uint8Array, void, undefined> {
  if (!body) return
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(cause => {
        throw new ConnectionLost('the answer was interrupted', { cause })
      })
      if (done) return
      yield value
    }
  } finally {
    // Not awaited: canceling a lost connection rejects again.
    void reader.cancel().catch(() => {})
  }
}

/** Cancels an unread body, which may be endless. */
export function discard({ body }: Response): void {
  // Not awaited: canceling a lost connection rejects.
  void body?.cancel().catch(() => {})
}

/** The media type of a response, without parameters; empty if it has none. */
export function mediaType({ headers }: Response): string {
  return (headers.get('content-type') ?? '').replace(/;.*$/s, '').trim().toLowerCase()
}

/** Whether a media type is JSON or a subtype such as `application/a2a+json`. A missing one counts as JSON. */
export function isJsonType(type: string): boolean {
  return type === '' || /^application\/(?:[\w.-]+\+)?json$/.test(type)
}

/** The error for a status, if the body contains no better one. */
const CODES: ReadonlyMap<number, ErrorCode> = new Map([
  [401, 'Unauthenticated'],
  [403, 'Forbidden'],
  [404, 'UnsupportedOperation'],
  [405, 'UnsupportedOperation'],
  [408, 'DeadlineExceeded'],
  [413, 'TooLarge'],
  [429, 'RateLimited'],
  [501, 'UnsupportedOperation'],
  [502, 'Overloaded'],
  [503, 'Overloaded'],
  [504, 'Overloaded']
])

const TEXTS: ReadonlyMap<number, string> = new Map([
  [401, 'requires credentials'],
  [403, 'refuses access'],
  [404, 'was not found'],
  [405, 'does not accept this kind of request'],
  [408, 'waited too long for the request'],
  [413, 'does not accept a request of this size'],
  [429, 'has received too many requests'],
  [501, 'does not support this request'],
  [502, 'cannot be reached'],
  [503, 'is not available at present'],
  [504, 'does not answer in time']
])

/** An HTTP answer without its body. */
export interface AnswerHead {
  readonly url: string
  readonly status: number
  readonly headers: { get(name: string): string | null }
}

/**
 * The error for a response without an A2A error: by its status, or InvalidAgentResponse for an unexpected status.
 * `Retry-After` becomes its `retryAfterMs`.
 */
export function statusError({ url, status, headers }: AnswerHead): A2AError {
  const summary = TEXTS.get(status) ?? 'sent a response that is not A2A'
  return new A2AError(
    CODES.get(status) ?? 'InvalidAgentResponse',
    `The agent at ${url} ${summary} (HTTP ${status}).`,
    retryOf(headers)
  )
}

/**
 * The error for an HTTP response that is not OK; `agentError` is the one in its body. Returns ConnectionLost, which is
 * retried, if the agent is Overloaded, or if a gateway answers with 502, 503, 504, or 429 with `Retry-After`. With
 * `Retry-After` the request counts as not received.
 */
export function callErrorOf(head: AnswerHead, agentError?: A2AError): A2AError | ConnectionLost {
  const error = agentError ?? statusError(head)
  const hasRetryAfter = error.retryAfterMs !== undefined
  if (error.code !== 'Overloaded' && (agentError || error.code !== 'RateLimited' || !hasRetryAfter)) return error
  return new ConnectionLost(error.message, { isUnsent: hasRetryAfter, cause: error })
}

/**
 * The temporary error of a handshake or of a request for a card: 408, 429, and server errors. `undefined` for every
 * other status. Neither request changes anything, so both can be retried.
 */
export function passingError({ url, status, headers }: AnswerHead): A2AError | undefined {
  if (status !== 408 && status !== 429 && (status < 500 || status === 501 || status === 505)) return undefined
  const text = `The agent at ${url} ${TEXTS.get(status) ?? 'is in trouble'} (HTTP ${status}).`
  return new A2AError(status === 429 ? 'RateLimited' : 'Overloaded', text, retryOf(headers))
}

/** `Retry-After` (RFC 9110 §10.2.3): seconds, or a date, which counts from the server's own `Date`. */
function retryOf(headers: AnswerHead['headers']): { readonly retryAfterMs?: number } {
  const retryAfter = headers.get('retry-after') ?? ''
  const retryAfterMs = /^\d{1,6}$/.test(retryAfter)
    ? Number(retryAfter) * 1000
    : Date.parse(retryAfter) - Date.parse(headers.get('date') ?? '')
  return retryAfterMs >= 0 ? { retryAfterMs } : {}
}

/**
 * The error in the text of a JSON-RPC 2.0 response; `undefined` for any other text. The `error` of a gateway's own JSON
 * is ignored, since its status says as much.
 */
export function jsonRpcErrorIn(text: string): Record<string, unknown> | undefined {
  const { jsonrpc, error } = answerIn(text)
  return jsonrpc === '2.0' && isObject(error) && Number.isInteger(error.code) ? error : undefined
}

function answerIn(text: string): Record<string, unknown> {
  try {
    const answer: unknown = JSON.parse(text)
    return isObject(answer) ? answer : {}
  } catch {
    return {}
  }
}

/** The maximum length of an event, in characters. */
const LONGEST_EVENT = 16 * 1024 * 1024

/**
 * The data of each event of an SSE response. Comments, events without data or with `{}`, with which some agents show
 * that they are alive, ids, names, unknown fields, and an incomplete last event are ignored. Throws ConnectionLost if
 * the stream is interrupted, InvalidAgentResponse for an event above 16 Mi characters. Leaving the loop ends the
 * request.
 */
export async function* readServerSentEvents(response: Response): AsyncGenerator<string, void, undefined> {
  const events: string[] = []
  let isTooLong = false
  const parser = createParser({
    onEvent: ({ data }) => {
      const content = data.trim()
      if (content !== '' && !/^\{\s*\}$/.test(content)) events.push(data)
    },
    onError: ({ type }) => (isTooLong ||= type === 'max-buffer-size-exceeded'),
    maxBufferSize: LONGEST_EVENT
  })
  const decoder = new TextDecoder()
  for await (const chunk of chunksOf(response)) {
    parser.feed(decoder.decode(chunk, { stream: true }))
    yield* events.splice(0)
    if (isTooLong)
      throw new A2AError(
        'InvalidAgentResponse',
        `The agent at ${response.url} sent an event that is longer than ${LONGEST_EVENT} characters.`
      )
  }
}

/** The error of REST and gRPC: a `google.rpc.Status`, with its details as JSON (§10.6, §11.6). */
interface RpcStatus {
  /** The name of the gRPC status, such as `NOT_FOUND`. */
  readonly status?: unknown
  readonly message?: unknown
  readonly details?: unknown
}

/** The error for a status without ErrorInfo. */
const CODE_OF_RPC_STATUS: ReadonlyMap<unknown, ErrorCode> = new Map<unknown, ErrorCode>([
  ['INVALID_ARGUMENT', 'InvalidParams'],
  ['NOT_FOUND', 'TaskNotFound'],
  ['FAILED_PRECONDITION', 'UnsupportedOperation'],
  ['UNIMPLEMENTED', 'UnsupportedOperation'],
  ['UNAUTHENTICATED', 'Unauthenticated'],
  ['PERMISSION_DENIED', 'Forbidden'],
  ['RESOURCE_EXHAUSTED', 'RateLimited'],
  ['UNAVAILABLE', 'Overloaded'],
  ['DEADLINE_EXCEEDED', 'DeadlineExceeded']
])

/** Converts a status to its error: by the reason in ErrorInfo (§5.4), else by the status, else InternalError. */
export function fromRpcStatus({ status, message, details }: RpcStatus): A2AError {
  const error = fromWireError({ message, data: details })
  const code = error.code === 'InternalError' ? CODE_OF_RPC_STATUS.get(status) : undefined
  if (!code) return error
  const { violations, retryAfterMs } = error
  return new A2AError(code, error.message, {
    violations,
    cause: error,
    ...(retryAfterMs !== undefined && { retryAfterMs })
  })
}
