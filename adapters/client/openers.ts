import type { Calls } from './calls.ts'
import type { Binding, UsableInterface } from './card/bindings.ts'
import type { PlacedOptions, SecretPlace } from './options.ts'

/** Opens a connection to an interface of an agent. `isReliable`: its card lists the reliability extension. */
export type OpenCalls = (url: string, options: PlacedOptions, isReliable: boolean) => Promise<Calls>

/** Opens one binding. */
export interface Opener {
  /** Loads the module of the binding, so that unused bindings are not loaded. */
  readonly load: () => Promise<OpenCalls>
  /** The optional peers of the binding. */
  readonly peers?: string
  /** The carriers of secrets that its requests lack, in words for an error. */
  readonly lacks?: Readonly<Partial<Record<SecretPlace['carrier'], string>>>
}

/** The bindings that the client supports, by version of A2A. */
export type Openers = Readonly<Record<UsableInterface['version'], Readonly<Partial<Record<Binding, Opener>>>>>

const GRPC: Omit<Opener, 'load'> = {
  peers: '@a2a-js/sdk @grpc/grpc-js @bufbuild/protobuf',
  lacks: { query: 'a key in the query' }
}

/** The bindings of the native versions. */
const NATIVE: Openers['1.0'] = {
  WEBSOCKET: { load: async () => (await import('./transports/websocket/calls.ts')).openSocketCalls },
  JSONRPC: { load: async () => (await import('./transports/json-rpc.ts')).openJsonRpc },
  'HTTP+JSON': { load: async () => (await import('./transports/rest.ts')).openRest }
}

/** The bindings in Node. In browsers `openers.browser.ts` replaces this file. */
export const OPENERS: Openers = {
  '1.1': {
    ...NATIVE,
    GRPC: { load: async () => (await import('./transports/official/grpc-next.ts')).loadGrpcNext(), ...GRPC }
  },
  '1.0': {
    ...NATIVE,
    GRPC: { load: async () => (await import('./transports/official/grpc.ts')).loadGrpc(), ...GRPC }
  },
  '0.3': {
    JSONRPC: { load: async () => (await import('./transports/http-03.ts')).openJsonRpc03 },
    'HTTP+JSON': { load: async () => (await import('./transports/http-03.ts')).openRest03 },
    GRPC: { load: async () => (await import('./transports/official/grpc.ts')).loadGrpc03(), ...GRPC }
  }
}
