import type { Openers } from './openers.ts'

/**
 * The bindings in browsers: those that need no optional peer, so that bundlers do not look for one. Agents that offer only the REST of
 * 1.0 or gRPC are called from Node.
 */
export const OPENERS: Openers = {
  '1.0': {
    WEBSOCKET: { load: async () => (await import('./transports/websocket/open-calls.ts')).openSocketCalls },
    JSONRPC: { load: async () => (await import('./transports/json-rpc.ts')).openJsonRpc }
  },
  '0.3': {
    JSONRPC: { load: async () => (await import('./transports/json-rpc-03.ts')).openJsonRpc03 },
    'HTTP+JSON': { load: async () => (await import('./transports/rest-03.ts')).openRest03 }
  }
}
