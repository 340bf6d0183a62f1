import { PROTOCOL_VERSION } from '../../../machines/protocol/versions.ts'
import type { Binding } from '../../client/card/bindings.ts'
import { httpAddress, originRefusal } from '../../client/hosts.ts'
import type { Caller, Note, Terms } from './caller.ts'

/** What every call of a test has: where the server was asked for, the key to show, and the extensions that it requires. */
export interface CallTerms {
  readonly asked: string
  readonly apiKey: string | undefined
  readonly extensions: readonly string[]
}

type Make = (url: string, usual: Terms, note: Note) => Caller

/** Loads what makes callers of a binding. */
type Loaders = Readonly<Record<Binding, () => Promise<Make>>>

/** Each is loaded only where it is used. */
const CALLERS: Loaders = {
  WEBSOCKET: async () => (await import('./websocket-caller.ts')).webSocketCaller,
  JSONRPC: async () => {
    const { jsonRpcCaller } = await import('./json-rpc-caller.ts')
    return (url, ...given) => jsonRpcCaller(httpAddress(url), ...given)
  },
  'HTTP+JSON': async () => {
    const { restCaller } = await import('./rest-caller.ts')
    return (url, ...given) => restCaller(httpAddress(url).replace(/\/$/, ''), ...given)
  },
  GRPC: async () => (await import('./grpc-caller.ts')).grpcCaller
}

/** What opens a caller of an interface, or why there is none. A key goes to no other origin than that of the card. */
export async function callerFor({ binding, url }: { binding: Binding; url: string }, { asked, apiKey, extensions }: CallTerms, callers = CALLERS): Promise<((note: Note) => Caller) | string> {
  try {
    const refusal = originRefusal(asked, url, { headers: apiKey })
    if (refusal) throw refusal
    const make = await callers[binding]()
    const usual: Terms = { version: PROTOCOL_VERSION, extensions, ...(apiKey !== undefined && { credentials: apiKey }) }
    return note => make(url, usual, note)
  } catch (error) {
    const { code, message } = error as Error & { code?: unknown }
    return code === 'ERR_MODULE_NOT_FOUND' ? `a package is missing: npm install ${PEERS}` : message
  }
}

/** What gRPC needs. */
const PEERS = '@a2a-js/sdk @grpc/grpc-js @bufbuild/protobuf'
