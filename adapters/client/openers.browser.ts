import type { Opener, Openers } from './openers.ts'

const HTTP: Omit<Opener, 'load'> = { lacks: { cookie: 'cookies of your own in browsers' } }

const NATIVE: Openers['1.0'] = {
  WEBSOCKET: {
    load: async () => (await import('./transports/websocket/calls.ts')).openSocketCalls,
    lacks: { header: 'headers in browsers', cookie: 'cookies of your own in browsers' }
  },
  JSONRPC: { load: async () => (await import('./transports/json-rpc.ts')).openJsonRpc, ...HTTP },
  'HTTP+JSON': { load: async () => (await import('./transports/rest.ts')).openRest, ...HTTP }
}

/**
 * The bindings in browsers: those that need no optional peer, so that bundlers do not look for one. Agents that offer
 * only gRPC are called from Node. A page chooses no cookies, and its WebSockets have no headers.
 */
export const OPENERS: Openers = {
  '1.1': NATIVE,
  '1.0': NATIVE,
  '0.3': {
    JSONRPC: { load: async () => (await import('./transports/http-03.ts')).openJsonRpc03, ...HTTP },
    'HTTP+JSON': { load: async () => (await import('./transports/http-03.ts')).openRest03, ...HTTP }
  }
}
