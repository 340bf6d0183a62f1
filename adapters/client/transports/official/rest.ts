import { isObject } from '../../../../machines/protocol/codec/json.ts'
import { A2AError, isA2AError } from '../../../../machines/protocol/errors.ts'
import { httpParameters, type Calls } from '../../calls.ts'
import { httpAddress } from '../../hosts.ts'
import { backOffOptions, currentHeaders, type PlacedOptions } from '../../options.ts'
import type { ConnectionLost } from '../../retries/lost-errors.ts'
import { CarriedCalls } from '../../retries/retried-calls.ts'
import { TransportState } from '../../retries/transport-state.ts'
import { chunksOf, discard, isJsonType, mediaType, wholeBody } from '../body.ts'
import { failureOf } from '../http-errors.ts'
import { sendRequest } from '../http-request.ts'
import type { AgentTransport, ResponseSink } from '../transport.ts'
import { fromRpcStatus, officialError } from './errors.ts'
import { perform } from './official.ts'
import { importPeer, type Sdk, type SdkClient } from './peers.ts'

/**
 * Loads the official client. The returned function connects to an agent over REST (§11), and sends nothing before the first call. Requests
 * and streams are retried as over JSON-RPC. The official client limits an event to 4 Mi characters.
 */
export async function loadRest(): Promise<(url: string, options: PlacedOptions, isReliable: boolean) => Promise<Calls>> {
  const [sdk, client] = await Promise.all([importPeer<Sdk>('@a2a-js/sdk'), importPeer<SdkClient>('@a2a-js/sdk/client')])
  return async (url, options, isReliable) =>
    new CarriedCalls({ carrier: restCarrier(sdk, client, httpAddress(url), options), way: new TransportState(url, isReliable), backOff: backOffOptions(options) })
}

function restCarrier(sdk: Sdk, { RestTransportFactory }: SdkClient, url: string, options: PlacedOptions): AgentTransport {
  return {
    carry: async (frame, hearer, signal) => {
      const headers = Object.fromEntries(new Headers({ ...currentHeaders(options), ...httpParameters(frame, options) }))
      const factory = new RestTransportFactory({ fetchImpl: (input, init) => answerTo(input as string, init, frame.method, hearer, options) })
      try {
        await perform(sdk, await factory.create(url, sdk.AgentCard.fromJSON({})), frame, hearer, { signal, serviceParameters: headers })
      } catch (error) {
        throw officialError(error)
      }
    },
    close: () => {}
  }
}

/** Sends a request of the official client. Returns OK responses of the expected type; throws for all others. */
async function answerTo(url: string, init: RequestInit | undefined, method: string, hearer: ResponseSink, options: PlacedOptions): Promise<Response> {
  const response = await sendRequest(url, { ...init }, options, method)
  const type = mediaType(response)
  const isStreaming = new Headers(init?.headers).get('accept') === 'text/event-stream'
  if (response.ok) hearer.answered(response.headers.get('a2a-extensions'))
  if (response.ok && isStreaming && type === 'text/event-stream') return new Response(streamOf(chunksOf(response)), { headers: response.headers })
  if (!isJsonType(type) || (response.ok && isStreaming)) {
    discard(response)
    throw response.ok ? ofWrongKind(url, type, isStreaming) : failureOf(response)
  }
  const text = await wholeBody(response)
  if (!response.ok) throw errorIn(response, text)
  return new Response(text, { headers: response.headers })
}

function ofWrongKind(url: string, type: string, isStreaming: boolean): A2AError {
  return new A2AError('InvalidAgentResponse', `The agent at ${url} answered with ${type || 'no content type'}, not with ${isStreaming ? 'a stream' : 'JSON'}.`)
}

function errorIn(response: Response, body: string): A2AError | ConnectionLost {
  const bare = failureOf(response)
  const { error } = jsonIn(body)
  if (!isObject(error)) return bare
  const { status, message, details } = error
  const told = fromRpcStatus({ status, message, details })
  if (told.code !== 'InternalError' || response.status === 500) return failureOf(response, told)
  return isA2AError(bare) ? new A2AError(bare.code, told.message, { cause: told }) : bare
}

function jsonIn(text: string): { error?: unknown } {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}

function streamOf(chunks: AsyncGenerator<Uint8Array, void, undefined>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    pull: async controller => {
      const { done, value } = await chunks.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel: async () => {
      await chunks.return()
    }
  })
}
