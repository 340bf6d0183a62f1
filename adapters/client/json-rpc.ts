import { A2AError } from '../../machines/protocol/errors.ts'
import { isObject } from '../../machines/protocol/json.ts'
import { operationOf } from '../../machines/protocol/operations.ts'
import { fromWireError } from '../../machines/protocol/wire-errors.ts'
import { discard, isJsonType, mediaType, wholeBody } from './body.ts'
import { httpParameters, type Calls } from './calls.ts'
import { CarriedCalls } from './carried-calls.ts'
import type { Carrier } from './carrier.ts'
import { failureOf } from './http-errors.ts'
import { sendRequest } from './http-request.ts'
import { httpAddress } from './hosts.ts'
import { jsonRpcErrorIn } from './json-rpc-error.ts'
import { backOffOptions, currentHeaders, type ConnectOptions } from './options.ts'
import type { RequestFrame } from './requests.ts'
import { eventsOf } from './server-sent-events.ts'
import { Way } from './way.ts'

/** Opens the way to an agent that speaks JSON-RPC over HTTP. Nothing is sent before the first call. */
export async function openJsonRpc(url: string, options: ConnectOptions, isReliable: boolean): Promise<Calls> {
  return new CarriedCalls({ carrier: jsonRpcCarrier(httpAddress(url), options), way: new Way(url, isReliable), backOff: backOffOptions(options) })
}

/**
 * Carries requests by JSON-RPC over HTTP (§9): each is a POST, service parameters are headers, streams are SSE. A
 * streaming call that is answered with JSON has one event. Redirects are refused. Answers up to 64 MiB and events up to
 * 16 Mi characters are read; beyond that, and for what is no answer to the request, it throws InvalidAgentResponse.
 */
function jsonRpcCarrier(url: string, options: ConnectOptions): Carrier {
  let lastId = 0
  return {
    carry: async (frame, hearer, signal) => {
      const id = (lastId += 1)
      const isStreaming = operationOf(frame.method)?.streaming === true
      const response = await sendRequest(url, {
        method: 'POST',
        headers: headersFor(frame, isStreaming, options),
        body: JSON.stringify({ jsonrpc: '2.0', id, method: frame.method, params: frame.params }),
        signal
      })
      if (response.ok) hearer.answered(response.headers.get('a2a-extensions'))
      if (response.ok && isStreaming && mediaType(response) === 'text/event-stream') {
        for await (const data of eventsOf(response)) hearer.result(resultIn(parsed(data, url), id, url))
        return
      }
      hearer.result(await answerIn(response, id, url))
      hearer.ended()
    },
    close: () => {}
  }
}

function headersFor(frame: RequestFrame, isStreaming: boolean, options: ConnectOptions): Headers {
  const headers = new Headers({ ...currentHeaders(options) })
  const own = { 'content-type': 'application/json', accept: isStreaming ? 'text/event-stream, application/json' : 'application/json' }
  for (const [name, value] of Object.entries({ ...httpParameters(frame, options), ...own })) headers.set(name, value)
  return headers
}

/** The result in a JSON answer. A JSON-RPC error in it counts whatever the status is; else the status does. */
async function answerIn(response: Response, id: number, url: string): Promise<unknown> {
  const type = mediaType(response)
  if (!isJsonType(type)) {
    discard(response)
    throw response.ok ? invalid(url, `answered with ${type}, not with JSON`) : failureOf(response)
  }
  const text = await wholeBody(response)
  if (response.ok) return resultIn(parsed(text, url), id, url)
  const error = jsonRpcErrorIn(text)
  throw failureOf(response, error && fromWireError(error))
}

/** The result in a JSON-RPC response. Throws the error in it. */
function resultIn(answer: unknown, id: number, url: string): unknown {
  if (!isObject(answer) || answer.jsonrpc !== '2.0') throw invalid(url, 'answered with what is no JSON-RPC 2.0 response')
  if ('error' in answer && answer.error !== null) throw fromWireError(answer.error)
  if (answer.id !== id) throw invalid(url, `answered request ${JSON.stringify(answer.id ?? null)}, not ${id}`)
  if (!('result' in answer)) throw invalid(url, 'answered with neither a result nor an error')
  return answer.result
}

function parsed(text: string, url: string): unknown {
  const value = tryParse(text)
  if (value === undefined) throw invalid(url, 'answered with what is not JSON')
  return value
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function invalid(url: string, what: string): A2AError {
  return new A2AError('InvalidAgentResponse', `The agent at ${url} ${what}.`)
}
