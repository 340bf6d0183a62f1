import { AgentCard } from '@a2a-js/sdk'
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc'
import { credentials, InterceptingCall, status as STATUS, type Client, type Interceptor, type Metadata } from '@grpc/grpc-js'
import { A2AError } from '../../machines/protocol/errors.ts'
import { serviceParameters, type Calls } from './calls.ts'
import { CarriedCalls } from './carried-calls.ts'
import type { Carrier, Hearer } from './carrier.ts'
import { ConnectionLost } from './connection-lost.ts'
import { detailsIn } from './grpc-status.ts'
import { officialError } from './official-errors.ts'
import { perform } from './official.ts'
import { backOffOptions, currentHeaders, type ConnectOptions } from './options.ts'
import { fromRpcStatus } from './rpc-status.ts'
import { Way } from './way.ts'

/** Names a request to the interceptor, which takes it away again: it never leaves this process. */
const REQUEST = 'taskchart-request'

/**
 * Opens the way to an agent that speaks gRPC (§10), through the official client. Nothing is sent before the first call.
 * `url` is `host:port`, spoken to with TLS unless the host is this machine, or has a scheme that says so: `grpc:` and
 * `http:` are plain, `grpcs:` and `https:` have TLS. Requests and streams that are cut off go on as those of JSON-RPC do.
 */
export async function openGrpc(url: string, options: ConnectOptions, isReliable: boolean): Promise<Calls> {
  return new CarriedCalls({ carrier: await grpcCarrier(url, options), way: new Way(url, isReliable), backOff: backOffOptions(options) })
}

async function grpcCarrier(url: string, options: ConnectOptions): Promise<Carrier> {
  const { target, isPlain } = addressOf(url)
  const hearers = new Map<string, Hearer>()
  const factory = new GrpcTransportFactory({
    grpcChannelCredentials: isPlain ? credentials.createInsecure() : credentials.createSsl(),
    grpcCallOptions: { interceptors: [tellAnswers(hearers)] }
  })
  const transport = await factory.create(target, AgentCard.fromJSON({}))
  let lastRequest = 0
  return {
    carry: async (frame, hearer, signal) => {
      const request = String((lastRequest += 1))
      const parameters = Object.fromEntries(new Headers({ ...currentHeaders(options), ...serviceParameters(options.extensions ?? [], frame.parameters) }))
      hearers.set(request, hearer)
      try {
        await perform(transport, frame, hearer, { signal, serviceParameters: { ...parameters, [REQUEST]: request } })
      } catch (error) {
        throw grpcError(error)
      } finally {
        hearers.delete(request)
      }
    },
    // The official client keeps its channel to itself, and does not close it.
    close: () => (Reflect.get(transport, 'grpcClient') as Client | undefined)?.close()
  }
}

/** Tells the hearer of a request when its answer begins, which the official client does not. */
function tellAnswers(hearers: ReadonlyMap<string, Hearer>): Interceptor {
  return (options, nextCall) =>
    new InterceptingCall(nextCall(options), {
      start: (metadata, listener, next) => {
        const hearer = hearers.get(String(metadata.get(REQUEST)[0]))
        metadata.remove(REQUEST)
        const onReceiveMetadata = (received: Metadata, pass: (received: Metadata) => void) => {
          hearer?.answered(received.get('a2a-extensions').join(','))
          pass(received)
        }
        next(metadata, { ...listener, onReceiveMetadata })
      }
    })
}

function grpcError(error: unknown): unknown {
  const { status, statusDetailsBin, cause, message } = error as { status?: STATUS; statusDetailsBin?: Uint8Array; cause?: { details?: string }; message: string }
  if (status === undefined) return officialError(error)
  const text = cause?.details ?? message
  if (!statusDetailsBin && (status === STATUS.UNAVAILABLE || /RST_STREAM|Connection dropped/.test(text))) {
    return new ConnectionLost(text, { isUnsent: /^(?:No connection established|Name resolution failed)/.test(text), cause: error })
  }
  if (text.startsWith('Received message larger than max')) return new A2AError('InvalidAgentResponse', `The agent's answer is too large: ${text}.`, { cause: error })
  return fromRpcStatus({ status: STATUS[status], message: text, details: statusDetailsBin ? detailsOf(statusDetailsBin) : [] })
}

/** An agent may send anything here. */
function detailsOf(status: Uint8Array): object[] {
  try {
    return detailsIn(status)
  } catch {
    return []
  }
}

/**
 * What gRPC calls, and whether without TLS. The host is given to DNS by name, for a target of gRPC may be much else,
 * and headers go only to the host that was checked. Throws InvalidAgentResponse for what is no address.
 */
function addressOf(url: string): { target: string; isPlain: boolean } {
  const [, scheme = '', host = '', port] = /^(?:(grpcs?|https?):\/\/)?([\w.-]+|\[[\da-f:.]+\])(?::(\d{1,5}))?\/?$/i.exec(url) ?? []
  if (host === '') throw new A2AError('InvalidAgentResponse', `The card names ${JSON.stringify(url)}, which is no address for gRPC. Those are host:port.`)
  const isPlain = scheme === '' ? /^(?:localhost|127\.[\d.]+|\[::1\])$/i.test(host) : /^(?:grpc|http)$/i.test(scheme)
  return { target: `dns:${host}:${port ?? (isPlain ? 80 : 443)}`, isPlain }
}
