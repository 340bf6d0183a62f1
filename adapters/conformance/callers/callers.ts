import { PROTOCOL_VERSION } from '../../../machines/protocol/versions.ts'
import type { Binding } from '../../client/card/bindings.ts'
import { httpAddress, originRefusal } from '../../client/hosts.ts'
import { lackOf } from '../../client/open-by-card.ts'
import { OPENERS } from '../../client/openers.ts'
import type { ConnectOptions, PlacedOptions } from '../../client/options.ts'
import type { Caller, Note, Terms } from './caller.ts'

/** The terms of every call in a test: the requested URL, what identifies the caller, and the required extensions. */
export interface CallTerms {
  readonly asked: string
  readonly access: Required<Pick<PlacedOptions, 'places'>> & ConnectOptions
  readonly extensions: readonly string[]
}

type Make = (url: string, usual: Terms, note: Note) => Caller

type Loaders = Readonly<Record<Binding, () => Promise<Make>>>

/** Each is loaded on demand. */
const CALLERS: Loaders = {
  WEBSOCKET: async () => (await import('./websocket-caller.ts')).webSocketCaller,
  JSONRPC: async () => {
    const { jsonRpcCaller } = await import('./http-callers.ts')
    return (url, ...given) => jsonRpcCaller(httpAddress(url), ...given)
  },
  'HTTP+JSON': async () => {
    const { restCaller } = await import('./http-callers.ts')
    return (url, ...given) => restCaller(httpAddress(url).replace(/\/$/, ''), ...given)
  },
  GRPC: async () => (await import('./grpc-caller.ts')).grpcCaller
}

/** A function that opens a caller of an interface, or the reason why there is none. Credentials are sent only where `connect` sends them. */
export async function callerFor(
  { binding, url }: { binding: Binding; url: string },
  { asked, access, extensions }: CallTerms,
  callers = CALLERS
): Promise<((note: Note) => Caller) | string> {
  try {
    const refusal = originRefusal(asked, url, access) ?? lackOf(asked, binding, OPENERS['1.0'][binding]?.lacks, access)
    if (refusal) throw refusal
    const make = await callers[binding]()
    const usual: Terms = { version: PROTOCOL_VERSION, extensions, access }
    return note => make(url, usual, note)
  } catch (error) {
    const { code, message } = error as Error & { code?: unknown }
    return code === 'ERR_MODULE_NOT_FOUND' ? `a package is missing: npm install ${PEERS}` : message
  }
}

/** The optional peers for gRPC. */
const PEERS = '@a2a-js/sdk @grpc/grpc-js @bufbuild/protobuf'
