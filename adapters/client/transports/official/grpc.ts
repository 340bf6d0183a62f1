import type { Transport } from '@a2a-js/sdk/client'
import type { ChannelCredentials, Client, Interceptor, status as Status } from '@grpc/grpc-js'
import { A2AError, BAD_REQUEST, ERROR_INFO, isA2AError, RETRY_INFO } from '../../../../machines/protocol/errors.ts'
import { type Calls, parameters03, serviceParameters } from '../../calls.ts'
import { isPlainHost } from '../../hosts.ts'
import { backOffOptions, currentHeaders, type PlacedOptions } from '../../options.ts'
import { ConnectionLost } from '../../retries/lost-errors.ts'
import { HttpCalls } from '../../retries/retried-calls.ts'
import { TransportState } from '../../retries/transport-state.ts'
import { type AgentTransport, fromRpcStatus, type ResponseReceiver } from '../http.ts'
import {
  type Grpc,
  importPeer,
  performRequest,
  type Sdk,
  type SdkGrpcClient,
  type SdkLegacyGrpc,
  type Wire
} from './official.ts'

/** The metadata key of a request's id for the interceptor, which removes it before the request is sent. */
const REQUEST = 'taskchart-request'

/** The metadata key of a binary `google.rpc.Status`. */
const DETAILS = 'grpc-status-details-bin'

/** A pending request, and the details of its error. */
interface Exchange {
  readonly receiver: ResponseReceiver
  details: readonly object[]
}

/** The options for transports of the official client. */
export interface ChannelOptions {
  readonly grpcChannelCredentials: ChannelCredentials
  readonly grpcCallOptions: { interceptors: Interceptor[] }
}

/** The optional peers of gRPC. */
export interface Peers {
  readonly sdk: Sdk
  readonly grpc: Grpc
  readonly wire: Wire
}

/** The differences between versions of A2A over gRPC. */
export interface GrpcDialect {
  /** Creates the official client's transport for a gRPC target. */
  open(target: string, options: ChannelOptions): Transport | Promise<Transport>
  /** The service parameters of a request, as metadata. */
  metadata(parameters: Record<string, string>): Record<string, string>
  /** Prepares an event or an answer before the official client decodes it. */
  received(event: object): object
  /** Corrects an event or an answer after the official client has decoded it, in wire JSON of 1.0. */
  result(value: unknown): unknown
}

/** The gRPC of 1.0, as the official client has it. */
export async function dialect10({ sdk }: Peers): Promise<GrpcDialect> {
  const { GrpcTransportFactory } = await importPeer<SdkGrpcClient>('@a2a-js/sdk/client/grpc')
  return {
    open: (target, options) => new GrpcTransportFactory(options).create(target, sdk.AgentCard.fromJSON({})),
    metadata: parameters => parameters,
    received: event => event,
    result: value => value
  }
}

/**
 * Loads the official client. The returned function connects to an agent over gRPC (§10), and sends nothing before the
 * first call. Its `url` is `host:port`, with TLS unless the host is this machine. It may have a scheme: `grpc:` and
 * `http:` without TLS, `grpcs:` and `https:` with TLS. Requests and streams are retried as over JSON-RPC.
 */
export async function loadGrpc(
  loadDialect = dialect10
): Promise<(url: string, options: PlacedOptions, isReliable: boolean) => Promise<Calls>> {
  const [sdk, grpc, wire] = await Promise.all([
    importPeer<Sdk>('@a2a-js/sdk'),
    importPeer<Grpc>('@grpc/grpc-js'),
    importPeer<Wire>('@bufbuild/protobuf/wire')
  ])
  const peers = { sdk, grpc, wire }
  const dialect = await loadDialect(peers)
  return async (url, options, isReliable) =>
    new HttpCalls({
      transport: await grpcCarrier(peers, url, options, dialect),
      state: new TransportState(url, isReliable, options.version),
      backOff: backOffOptions(options)
    })
}

async function grpcCarrier(
  peers: Peers,
  url: string,
  options: PlacedOptions,
  dialect: GrpcDialect
): Promise<AgentTransport> {
  const { sdk, grpc } = peers
  const { target, isPlain } = grpcTargetOf(url)
  const exchanges = new Map<string, Exchange>()
  const transport = await dialect.open(target, {
    grpcChannelCredentials: isPlain ? grpc.credentials.createInsecure() : grpc.credentials.createSsl(),
    grpcCallOptions: { interceptors: [listenIn(peers, exchanges, dialect)] }
  })
  let lastRequest = 0
  return {
    send: async (frame, receiver, signal) => {
      const request = String((lastRequest += 1))
      const parameters = checked(grpc, {
        ...currentHeaders(options),
        ...dialect.metadata(serviceParameters(options, frame))
      })
      const exchange: Exchange = { receiver, details: [] }
      exchanges.set(request, exchange)
      try {
        const results: Pick<ResponseReceiver, 'result'> = { result: value => receiver.result(dialect.result(value)) }
        await performRequest(sdk, transport, frame, results, {
          signal,
          serviceParameters: { ...parameters, [REQUEST]: request }
        })
      } catch (error) {
        throw isA2AError(error) ? error : grpcError(grpc, error, exchange.details)
      } finally {
        exchanges.delete(request)
      }
    },
    // The official client does not close its channel, and has no method for it.
    close: () => (Reflect.get(transport, 'grpcClient') as Client | undefined)?.close()
  }
}

/**
 * Intercepts what the official client does not expose: the start of an answer, and the details of an error. It also
 * hides malformed details and answers without content from that client, which would throw outside of any call. Such an
 * answer gets content that validation refuses later.
 */
function listenIn(
  { sdk, grpc, wire }: Peers,
  exchanges: ReadonlyMap<string, Exchange>,
  dialect: GrpcDialect
): Interceptor {
  const nothing = { $case: 'message', value: sdk.Message.fromJSON({}) }
  return (options, nextCall) =>
    new grpc.InterceptingCall(nextCall(options), {
      start: (metadata, _, next) => {
        const exchange = exchanges.get(String(metadata.get(REQUEST)[0]))
        metadata.remove(REQUEST)
        next(metadata, {
          onReceiveMetadata: (received, pass) => {
            exchange?.receiver.answered(
              [...received.get('a2a-extensions'), ...received.get('x-a2a-extensions')].join(',')
            )
            pass(received)
          },
          onReceiveMessage: (message: object | null, pass: (message: object | null) => void) => {
            pass(message && 'payload' in message ? dialect.received({ payload: message.payload ?? nothing }) : message)
          },
          onReceiveStatus: (status, pass) => {
            const [details] = status.metadata.get(DETAILS)
            status.metadata.remove(DETAILS)
            if (exchange && details instanceof Uint8Array) exchange.details = statusDetailsOf(wire, details)
            pass(status)
          }
        })
      }
    })
}

/** The details of a status; empty if they are malformed. */
export function statusDetailsOf(wire: Wire, status: Uint8Array): object[] {
  try {
    return detailsIn(wire, status)
  } catch {
    return []
  }
}

/** Converts an error of the official client, without the prefix that it adds to the agent's message. */
function grpcError({ status: STATUS }: Grpc, error: unknown, details: readonly object[]): unknown {
  const { status, message } = error as Error & { readonly status: Status }
  const text = message.replace(/^gRPC error for \w+: \d+ ?/, '')
  // A server that closes cancels its calls. A call that this client cancels ends before its error is read.
  const isLost = status === STATUS.UNAVAILABLE || status === STATUS.CANCELLED
  if (details.length === 0 && (isLost || /RST_STREAM|Connection dropped/.test(text))) {
    return new ConnectionLost(text, {
      isUnsent: /^(?:No connection established|Name resolution failed)/.test(text),
      cause: error
    })
  }
  if (text.startsWith('Received message larger than max'))
    return new A2AError('InvalidAgentResponse', `The agent's answer is too large: ${text}.`, { cause: error })
  return fromRpcStatus({ code: status, status: STATUS[status], message: text, details })
}

/** Validates headers as metadata, whose names are stricter. Throws for those that it cannot carry. */
function checked({ Metadata }: Grpc, headers: Readonly<Record<string, string>>): Record<string, string> {
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value)
  return { ...headers }
}

/**
 * The gRPC target of a URL, and whether it is used without TLS. The target names DNS explicitly, since gRPC supports
 * other resolvers, and headers may only go to the checked origin. Throws InvalidAgentResponse for an invalid URL.
 */
export function grpcTargetOf(url: string): { target: string; isPlain: boolean } {
  const [, scheme = '', host = '', port] =
    /^(?:(grpcs?|https?):\/\/)?([\w.-]+|\[[\da-f:.]+\])(?::(\d{1,5}))?\/?$/i.exec(url) ?? []
  if (host === '')
    throw new A2AError(
      'InvalidAgentResponse',
      `The card names ${JSON.stringify(url)}, which is not an address for gRPC. Write host:port.`
    )
  const isPlain = scheme === '' ? isPlainHost(host) : /^(?:grpc|http)$/i.test(scheme)
  return { target: `dns:${host}:${port ?? (isPlain ? 80 : 443)}`, isPlain }
}

/** A marker in the metadata of an appended chunk, which restores `append`: the official client drops it. */
const APPENDED = 'taskchart-append'

const GRPC_03: Omit<GrpcDialect, 'open'> = {
  metadata: parameters03,
  received: event => {
    const { payload } = event as {
      readonly payload: { readonly $case: string; readonly value: { readonly append?: boolean; metadata?: object } }
    }
    if (payload.$case === 'artifactUpdate' && payload.value.append)
      payload.value.metadata = { ...payload.value.metadata, [APPENDED]: true }
    return event
  },
  result: value => {
    const { artifactUpdate: { metadata = {}, ...others } = {} } = value as {
      readonly artifactUpdate?: { readonly metadata?: Record<string, unknown> }
    }
    const { [APPENDED]: isAppended, ...own } = metadata
    if (!isAppended) return value
    return { artifactUpdate: { ...others, append: true, ...(Object.keys(own).length > 0 && { metadata: own }) } }
  }
}

/**
 * Loads the official client. The returned function connects to an agent over the gRPC of 0.3. Calls and answers are in
 * wire JSON of 1.0.
 */
export function loadGrpc03() {
  return loadGrpc(async () => {
    const { LegacyGrpcTransport } = await importPeer<SdkLegacyGrpc>('@a2a-js/sdk/compat/v0_3/client/grpc')
    return {
      ...GRPC_03,
      open: (endpoint, { grpcChannelCredentials, grpcCallOptions }) =>
        new LegacyGrpcTransport({ endpoint, grpcChannelCredentials, grpcCallOptions })
    }
  })
}

/** The fields of a protobuf message by number, in order: bytes or integers. */
export type Fields = ReadonlyMap<number, readonly (Uint8Array | bigint)[]>
type Read = (message: Uint8Array) => Fields

/**
 * Converts the details of a binary `google.rpc.Status`, which gRPC sends as `grpc-status-details-bin`, to their JSON
 * form. A detail that A2A does not use (§5.4) keeps only its `@type`. Throws for a malformed message.
 */
export function detailsIn(wire: Wire, status: Uint8Array): object[] {
  const read: Read = message => fieldsIn(wire, message)
  return allBytes(read(status), 3).map(detail => {
    const fields = read(detail)
    const type = text(fields, 1)
    return { '@type': type, ...READERS.get(type)?.(read(bytes(fields, 2)), read) }
  })
}

const READERS = new Map<string, (fields: Fields, read: Read) => object>([
  [
    ERROR_INFO,
    (fields, read) => ({
      reason: text(fields, 1),
      domain: text(fields, 2),
      metadata: Object.fromEntries(pairs(fields, 3, read))
    })
  ],
  [
    BAD_REQUEST,
    (fields, read) => ({
      fieldViolations: pairs(fields, 1, read).map(([field, description]) => ({ field, description }))
    })
  ],
  [RETRY_INFO, (fields, read) => ({ retryDelay: duration(read(bytes(fields, 1))) })]
])

/** The fields of a message. Those of other wire types are left out. */
export function fieldsIn({ BinaryReader, WireType }: Wire, message: Uint8Array): Fields {
  const fields = new Map<number, (Uint8Array | bigint)[]>()
  const reader = new BinaryReader(message)
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag()
    const values = fields.get(field) ?? []
    fields.set(field, values)
    if (type === WireType.LengthDelimited) values.push(reader.bytes())
    else if (type === WireType.Varint) values.push(BigInt(reader.int64()))
    else reader.skip(type)
  }
  return fields
}

/** The values of a field of bytes, texts or messages. */
export function allBytes(fields: Fields, field: number): Uint8Array[] {
  return (fields.get(field) ?? []).filter(value => value instanceof Uint8Array)
}

/** Messages whose first two fields are strings: map entries and field violations. */
function pairs(fields: Fields, field: number, read: Read): [string, string][] {
  return allBytes(fields, field)
    .map(read)
    .map(pair => [text(pair, 1), text(pair, 2)])
}

function bytes(fields: Fields, field: number): Uint8Array {
  return allBytes(fields, field).at(-1) ?? new Uint8Array()
}

function text(fields: Fields, field: number): string {
  return new TextDecoder().decode(bytes(fields, field))
}

function duration(fields: Fields): string {
  const [seconds, nanos] = [1, 2].map(field => Number(fields.get(field)?.at(-1) ?? 0))
  return `${Number(seconds) + Number(nanos) / 1e9}s`
}
