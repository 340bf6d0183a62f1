import { PROTOCOL_VERSION } from '../../../machines/protocol/versions.ts'
import type { Binding } from '../../client/card/bindings.ts'
import { httpAddress, originRefusal } from '../../client/hosts.ts'
import type { Caller, Note, Terms } from './caller.ts'

/** The terms of every call in a test: the requested URL, the key, and the required extensions. */
export interface CallTerms {
  readonly asked: string
  readonly apiKey: string | undefined
  readonly extensions: readonly string[]
}

type Make = (url: string, usual: Terms, note: Note) => Caller

type Loaders = Readonly<Record<Binding, () => Promise<Make>>>

/** Each is loaded on demand. */
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

/** A function that opens a caller of an interface, or the reason why there is none. A key is only sent to the card's origin. */
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

/** The optional peers for gRPC. */
const PEERS = '@a2a-js/sdk @grpc/grpc-js @bufbuild/protobuf'
