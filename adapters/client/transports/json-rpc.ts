import { isObject } from '../../../machines/protocol/codec/json.ts'
import { A2AError } from '../../../machines/protocol/errors.ts'
import type { OperationMethod } from '../../../machines/protocol/operations.ts'
import { fromWireError } from '../../../machines/protocol/wire-errors.ts'
import { activatedBy, httpParameters, type Calls } from '../calls.ts'
import { httpAddress } from '../hosts.ts'
import { backOffOptions, currentHeaders, type PlacedOptions } from '../options.ts'
import { METHODS, type RequestFrame } from '../requests.ts'
import { HttpCalls } from '../retries/retried-calls.ts'
import { TransportState } from '../retries/transport-state.ts'
import { discard, callErrorOf, isJsonType, jsonRpcErrorIn, mediaType, wholeBody } from './body.ts'
import { type AgentTransport, readServerSentEvents, sendRequest } from './http.ts'

/** The wire format of a version of A2A. */
export interface WireFormat {
  /** The method and params of a request. Throws UnsupportedOperation if the version has no such method. */
  request(frame: RequestFrame): { readonly method: string; readonly params?: unknown }
  /** The service parameters of a request, as headers. */
  headers(parameters: Record<string, string>): Record<string, string>
  /** Converts a well-formed result of a method to wire JSON of 1.0. */
  result(method: OperationMethod, value: unknown): unknown
}

const CURRENT: WireFormat = { request: frame => frame, headers: parameters => parameters, result: (_, value) => value }

/** Connects to an agent over JSON-RPC and HTTP. Nothing is sent before the first call. */
export async function openJsonRpc(
  url: string,
  options: PlacedOptions,
  isReliable: boolean,
  dialect = CURRENT
): Promise<Calls> {
  return new HttpCalls({
    transport: jsonRpcCarrier(httpAddress(url), options, dialect),
    state: new TransportState(url, isReliable, options.version),
    backOff: backOffOptions(options)
  })
}

/**
 * Sends requests as JSON-RPC over HTTP (§9): each is a POST, service parameters are headers, streams are SSE. A
 * streaming call that is answered with JSON has one event. Throws InvalidAgentResponse for answers above 64 MiB, events
 * above 16 Mi characters, and anything but a response to the request.
 */
function jsonRpcCarrier(url: string, options: PlacedOptions, dialect: WireFormat): AgentTransport {
  let lastId = 0
  return {
    send: async (frame, receiver, signal) => {
      const id = (lastId += 1)
      const isStreaming = METHODS[frame.method].streams
      const { method, params } = dialect.request(frame)
      const read = (answer: unknown) => dialect.result(frame.method, resultIn(answer, id, url))
      const response = await sendRequest(
        url,
        {
          method: 'POST',
          headers: jsonRpcHeaders(frame, isStreaming, options, dialect),
          body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
          signal
        },
        options,
        frame.method
      )
      if (response.ok) receiver.answered(activatedBy(response))
      if (response.ok && isStreaming && mediaType(response) === 'text/event-stream') {
        for await (const data of readServerSentEvents(response)) receiver.result(read(parseResponse(data, url)))
        return
      }
      receiver.result(await answerIn(response, url, read))
      receiver.ended()
    },
    close: () => {}
  }
}

/** The headers of a request: those of the options, its service parameters, and its content types. */
export function jsonRpcHeaders(
  frame: RequestFrame,
  isStreaming: boolean,
  options: PlacedOptions,
  dialect: Pick<WireFormat, 'headers'>
): Headers {
  const headers = new Headers({ ...currentHeaders(options) })
  const own = {
    'content-type': 'application/json',
    accept: isStreaming ? 'text/event-stream, application/json' : 'application/json'
  }
  for (const [name, value] of Object.entries({ ...dialect.headers(httpParameters(frame, options)), ...own }))
    headers.set(name, value)
  return headers
}

/** The result in a JSON answer. A JSON-RPC error in the body takes precedence over the status. */
async function answerIn(response: Response, url: string, read: (answer: unknown) => unknown): Promise<unknown> {
  const text = await readJsonText(response, url)
  if (response.ok) return read(parseResponse(text, url))
  const error = jsonRpcErrorIn(text)
  throw callErrorOf(response, error && fromWireError(error))
}

/** The text of a JSON answer. Throws for another media type: the error for its status, or InvalidAgentResponse. */
export async function readJsonText(response: Response, url: string): Promise<string> {
  const type = mediaType(response)
  if (isJsonType(type)) return wholeBody(response)
  discard(response)
  throw response.ok ? invalid(url, `answered with ${type}, not with JSON`) : callErrorOf(response)
}

/** The result in a JSON-RPC response. Throws the error in it. */
function resultIn(answer: unknown, id: number, url: string): unknown {
  if (!isObject(answer) || answer.jsonrpc !== '2.0') throw invalid(url, 'sent a response that is not JSON-RPC 2.0')
  if ('error' in answer && answer.error !== null) throw fromWireError(answer.error)
  if (answer.id !== id) throw invalid(url, `answered request ${JSON.stringify(answer.id ?? null)}, not ${id}`)
  if (!('result' in answer)) throw invalid(url, 'answered with neither a result nor an error')
  return answer.result
}

/** Parses JSON. Throws InvalidAgentResponse if it is invalid. */
export function parseResponse(text: string, url: string): unknown {
  const value = tryParse(text)
  if (value === undefined) throw invalid(url, 'sent a response that is not JSON')
  return value
}

/** Parses JSON; `undefined` if it is invalid. */
export function tryParse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function invalid(url: string, what: string): A2AError {
  return new A2AError('InvalidAgentResponse', `The agent at ${url} ${what}.`)
}
