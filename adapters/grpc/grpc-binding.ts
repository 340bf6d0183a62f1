import { promisify } from 'node:util'
import type { User } from '@a2a-js/sdk/server'
import { A2AService, grpcService } from '@a2a-js/sdk/server/grpc'
import {
  type Metadata,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream
} from '@grpc/grpc-js'
import type { AgentInterface } from '../../machines/protocol/card.ts'
import { NEXT_VERSION } from '../../machines/protocol/versions.ts'
import type { Clock } from '../../runtime/ports/clock.ts'
import { TwoGenerationCache } from '../../runtime/primitives/collections.ts'
import { checkOptions, textSuchAs, withMethods, type OptionKinds } from '../../runtime/primitives/options.ts'
import { servedRuntime, type ServedRuntime } from '../../runtime/runtime-options.ts'
import { requestHandlerOf } from '../a2a-sdk/request-handler.ts'
import { noteFailure } from '../a2a-sdk/sdk-objects.ts'
import { whileConnected } from '../a2a-sdk/while-connected.ts'
import { credentialsExpiredError, authenticateRequest } from '../entry/admission.ts'
import { bindError } from '../entry/bind.ts'
import { ADDRESS, checkHost, checkPort, GOING, type Address } from '../entry/listen.ts'
import { checkPackages } from '../peers/installed-packages.ts'
import type { OpenBinding, PortBinding } from '../serve/port-extension.ts'
import { grpcErrors } from './grpc-errors.ts'
import { LIVE_SERVICE, nextVersionService, refuseLive } from './next-version.ts'

checkPackages(['@grpc/grpc-js', '@bufbuild/protobuf'])

/** The options of gRPC. */
export interface GrpcOptions extends Address {
  /** 0 takes a free port. */
  readonly port: number
  /**
   * The address in cards, `host:port`. Default: the host of the runtime's `publicUrl`, else the first of its `hosts`,
   * else the bound address, with the bound port.
   */
  readonly url?: string
  /** TLS: credentials of `@grpc/grpc-js`. Default none. */
  readonly credentials?: ServerCredentials
}

const OPTIONS: OptionKinds<GrpcOptions> = {
  ...ADDRESS,
  url: textSuchAs("'agent.example:50051'"),
  credentials: withMethods(['_isSecure'], 'credentials such as ServerCredentials.createSsl(…) of @grpc/grpc-js')
}

/** The minimum time that a connection is remembered after its last call. */
const CONNECTIONS_REMEMBERED_MS = 24 * 60 * 60 * 1000

/**
 * gRPC on its own port, through the official service: `serve(runtime, { port: 4242, grpc: grpc({ port: 50051 }) })`.
 * The runtime's `authenticate` identifies callers by their metadata, as it does by headers. Errors have their status
 * and all details.
 */
export function grpc(options: GrpcOptions): PortBinding {
  checkOptions(options, OPTIONS, 'grpc', 'grpc({ port: 50051 })')
  checkPort(options, 'grpc', 'grpc({ port: 50051 })')
  return { open: runtime => open(servedRuntime(runtime, 'grpc'), options) }
}

/** Resolves when it accepts calls. Rejects for a port that cannot be bound; throws TypeError as `checkHost` does. */
async function open(
  runtime: ServedRuntime,
  { port, host = '127.0.0.1', url, credentials = ServerCredentials.createInsecure() }: GrpcOptions
): Promise<OpenBinding> {
  checkHost(host, runtime)
  const { settings } = runtime
  const { messageBytes, callsPerConnection, streamsPerConnection } = settings.limits
  const server = new Server({
    'grpc.max_receive_message_length': messageBytes,
    'grpc.max_concurrent_streams': callsPerConnection + streamsPerConnection
  })
  const bound = await promisify(server.bindAsync.bind(server))(
    `${host.includes(':') ? `[${host}]` : host}:${port}`,
    credentials
  ).catch((error: Error) => {
    throw bindError(withCode(error), { host, port })
  })
  // The request handler reads this list on every call.
  const interfaces: AgentInterface[] = settings.versions.map(protocolVersion => ({
    url: url ?? `${hostFor(host, settings)}:${bound}`,
    protocolBinding: 'GRPC',
    protocolVersion
  }))
  const own = [...interfaces]
  let isDraining = false
  let closing: Promise<void> | undefined

  /** Objects that identify connections, by peer address. */
  const connections = new TwoGenerationCache<object>(() => ({}), CONNECTIONS_REMEMBERED_MS)

  const identify = async (call: GrpcCall): Promise<User> => {
    if (isDraining) settings.counters.refused(GOING.status)
    if (isDraining) throw GOING.error
    const { principal, refusal } = await authenticateRequest(() => headersIn(call.metadata), settings)
    if (refusal) settings.counters.refused(refusal.status)
    if (refusal) throw refusal.error
    const connection = connections.get(call.getPeer(), settings.clock.now())
    if (principal?.expiresAtMs !== undefined) endAt(principal.expiresAtMs, call, settings.clock)
    return {
      isAuthenticated: principal !== undefined,
      userName: principal?.id ?? '',
      ...(principal?.claims && { claims: principal.claims }),
      connection
    } as User
  }
  const userBuilder = whileConnected(identify)
  const isNext = settings.versions.includes(NEXT_VERSION)
  const next = isNext ? nextVersionService(A2AService) : undefined
  const requestHandler = requestHandlerOf(runtime, { interfaces }, next?.additions)
  server.addService(next?.service ?? A2AService, grpcErrors(grpcService({ requestHandler, userBuilder })))
  if (isNext)
    server.addService(
      LIVE_SERVICE,
      refuseLive(call => identify(call as unknown as GrpcCall), settings)
    )

  const close = () =>
    new Promise<void>(resolve => {
      server.tryShutdown(() => resolve())
      server.forceShutdown()
    })
  return {
    interfaces: own,
    list: all => void interfaces.splice(0, interfaces.length, ...all),
    drain: () => {
      isDraining = true
    },
    close: () => (closing ??= close())
  }
}

/** The error of `bindAsync`, with the code of Node's error, which it has in its text only. */
function withCode(error: Error): Error {
  const code = error.message.startsWith('Name resolution failed')
    ? 'ENOTFOUND'
    : /\bE[A-Z]{4,}\b/.exec(error.message)?.[0]
  return Object.assign(error, code !== undefined && { code })
}

/** The host in cards. */
function hostFor(host: string, { publicUrl, hosts }: ServedRuntime['settings']): string {
  if (publicUrl !== undefined) return new URL(publicUrl).hostname
  const [name = host.includes(':') ? `[${host}]` : host] = hosts?.keys() ?? []
  return name
}

/** The metadata of a call as headers, without binary values. */
function headersIn(metadata: Metadata): Record<string, string> {
  return Object.fromEntries(
    Object.entries(metadata.getMap()).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  )
}

/** A call of the service, unary or streaming. */
type GrpcCall = ServerUnaryCall<unknown, unknown> | ServerWritableStream<unknown, unknown>

/** The paths of streaming operations. */
const STREAMS: ReadonlySet<string> = new Set(
  Object.values(A2AService).flatMap(({ path, responseStream }) => (responseStream ? path : []))
)

/**
 * Ends the stream of a call with Unauthenticated when its caller's credentials expire. Unary calls are not affected.
 */
function endAt(expiresAtMs: number, call: GrpcCall, clock: Clock): void {
  if (!STREAMS.has(call.getPath())) return
  const timer = clock.setTimeout(() => {
    const error = credentialsExpiredError()
    noteFailure(error, call.request)
    call.emit('error', error)
    // Ends the service's stream as if the client had disconnected.
    call.emit('cancelled', 'expired')
  }, expiresAtMs - clock.now())
  const clear = () => clock.clearTimeout(timer)
  call.once('finish', clear).once('cancelled', clear)
}
