import { createParser } from 'eventsource-parser'
import { A2AError, type ErrorCode } from '../../../machines/protocol/errors.ts'
import type { OperationMethod } from '../../../machines/protocol/operations.ts'
import { fromWireError } from '../../../machines/protocol/wire-errors.ts'
import { systemClock } from '../../../runtime/ports/clock.ts'
import { onAbort } from '../../../runtime/primitives/event-loop.ts'
import { hostAddress } from '../hosts.ts'
import { type ConnectOptions, currentAddress, type PlacedOptions } from '../options.ts'
import { METHODS, type RequestFrame } from '../requests.ts'
import { ConnectionLost, nobodyAnswers } from '../retries/lost-errors.ts'
import { chunksOf, discard } from './body.ts'

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

/** The error of `fetch` for a port that it does not allow, such as 1. It has no code. */
const BLOCKED_PORT = 'bad port'

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
  method?: OperationMethod
): Promise<Response> {
  return answerFrom(url, { init, options, url, isRead: method !== undefined && METHODS[method].reads }, 0)
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
  return new ConnectionLost(code === '' ? 'no answer' : code, {
    isUnsent: code === BLOCKED_PORT || UNSENT.test(code),
    cause
  })
}

function codeOf(cause: unknown): string {
  const { message, code } = Object(cause) as Record<string, unknown>
  if (message === BLOCKED_PORT) return BLOCKED_PORT
  return typeof code === 'string' ? code : ''
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
  /** The number of the status: of HTTP over REST, of gRPC over gRPC. */
  readonly code?: unknown
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
export function fromRpcStatus({ code: number, status, message, details }: RpcStatus): A2AError {
  const error = fromWireError({ code: number, message, data: details })
  const code = error.code === 'InternalError' ? CODE_OF_RPC_STATUS.get(status) : undefined
  if (!code) return error
  const { violations, retryAfterMs } = error
  return new A2AError(code, error.message, {
    violations,
    cause: error,
    ...(retryAfterMs !== undefined && { retryAfterMs })
  })
}
