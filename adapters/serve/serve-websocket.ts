import type { Server } from 'node:http'
import type { AgentInterface } from '../../machines/protocol/card.ts'
import { checkOptions, withMethods, type OptionKinds } from '../../runtime/primitives/options.ts'
import { checkRuntime } from '../../runtime/runtime-options.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { checkInterfaces, INTERFACES } from '../entry/interfaces.ts'
import { A_PATH, ADDRESS, checkHost, listen, type Address } from '../entry/listen.ts'
import { cardAndPage } from '../http/handler.ts'
import { DIALECTS, type Dialect } from '../json-rpc/dialect.ts'
import { attach, together, type Served } from '../websocket/attach.ts'

/** Where to serve: a port of our own, or an HTTP server that the app listens with. */
export type ServeOptions = (Address | { readonly server: Server }) & {
  /** Path of the WebSocket. Default `/`. */
  readonly path?: string
  /** Older versions of A2A to speak beside 1.0. Default none. */
  readonly dialects?: readonly Dialect[]
  /** Where else the app serves the agent, such as gRPC: cards list these after the WebSocket. Default nowhere. */
  readonly interfaces?: readonly AgentInterface[]
}

const OPTIONS: OptionKinds<ServeOptions> = { ...ADDRESS, server: withMethods(['address', 'on'], 'an HTTP server of node:http'), path: A_PATH, dialects: DIALECTS, interfaces: INTERFACES }

/**
 * Serves a runtime over WebSocket: JSON-RPC 2.0, one object in each text frame, many calls and streams on one
 * connection. On a port of our own the agent's card is served too. Resolves when connections are taken; throws TypeError
 * for an unknown option, and when the options contradict each other or would open an agent without `authenticate` to others.
 */
export async function serveWebSocket(runtime: Runtime, options: ServeOptions): Promise<Served> {
  checkRuntime(runtime, 'serveWebSocket')
  checkOptions(options, OPTIONS, 'serveWebSocket', 'serveWebSocket(runtime, { port: 4242 })')
  if ('server' in options === 'port' in options) throw new TypeError('Give serveWebSocket either a port, or the server of your app.')
  const { path = '/', dialects = [], interfaces } = options
  checkInterfaces(interfaces)
  const offer = { webSocket: true, http: false, dialects, interfaces }
  if ('server' in options) return attach(runtime, listening(options.server, runtime), path, offer)
  const own = await listen(options, runtime, cardAndPage(runtime, { path, ...offer }))
  return together(attach(runtime, own.server, path, offer), own)
}

/** An app's server, which has to listen already: its address is ours. */
function listening(server: Server, runtime: Runtime): Server {
  const address = server.address()
  if (address === null) throw new TypeError('The server does not listen yet. Call serveWebSocket when it does.')
  if (typeof address === 'object') checkHost(address.address, runtime)
  return server
}

export type { Served }
