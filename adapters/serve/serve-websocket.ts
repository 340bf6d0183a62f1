import type { Server } from 'node:http'
import type { AgentInterface } from '../../machines/protocol/card.ts'
import type { Runtime } from '../../runtime/index.ts'
import { checkOptions, withMethods, type OptionKinds } from '../../runtime/primitives/options.ts'
import { checkRuntime } from '../../runtime/runtime-options.ts'
import { checkInterfaces, INTERFACES } from '../entry/interfaces.ts'
import { A_PATH, ADDRESS, checkHost, checkPath, listen, type Address } from '../entry/listen.ts'
import { cardAndPage } from '../http/handler.ts'
import { DIALECTS, type Dialect } from '../json-rpc/dialect.ts'
import { attach, together, type Served } from '../websocket/attach.ts'

/** Where to serve: a port to open, or a listening HTTP server of the app. */
export type ServeOptions = (Address | { readonly server: Server }) & {
  /** The path of the WebSocket. Default `/`. */
  readonly path?: string
  /** Older versions of A2A to support beside 1.0. Default none. */
  readonly dialects?: readonly Dialect[]
  /** Other interfaces of the agent, such as gRPC. Cards list them after the WebSocket. Default none. */
  readonly interfaces?: readonly AgentInterface[]
}

const OPTIONS: OptionKinds<ServeOptions> = {
  ...ADDRESS,
  server: withMethods(['address', 'on'], 'an HTTP server of node:http'),
  path: A_PATH,
  dialects: DIALECTS,
  interfaces: INTERFACES
}

/**
 * Serves a runtime over WebSocket: JSON-RPC 2.0, one object per text frame, many calls and streams per connection.
 * Without `server` it also serves the agent's card. Resolves when it accepts connections; throws TypeError for an
 * unknown option, and when the options conflict or would expose an agent without `authenticate` to the network.
 */
export async function serveWebSocket(runtime: Runtime, options: ServeOptions = {}): Promise<Served> {
  checkRuntime(runtime, 'serveWebSocket')
  checkOptions(options, OPTIONS, 'serveWebSocket', 'serveWebSocket(runtime, { port: 4242 })')
  if ('server' in options && 'port' in options)
    throw new TypeError('Give serveWebSocket either a port, or the server of your app.')
  const { path = '/', dialects = [], interfaces } = options
  checkInterfaces(interfaces)
  if (!('server' in options)) checkPath(path)
  const offer = { webSocket: true, http: false, dialects, interfaces }
  if ('server' in options) return attach(runtime, listening(options.server, runtime), path, offer)
  const own = await listen(options, runtime, cardAndPage(runtime, { path, ...offer }))
  return together(attach(runtime, own.server, path, offer), own)
}

/** The app's server, which must be listening, since its address goes into the card. */
function listening(server: Server, runtime: Runtime): Server {
  const address = server.address()
  if (address === null) throw new TypeError('The server does not listen yet. Call serveWebSocket when it does.')
  if (typeof address === 'object') checkHost(address.address, runtime)
  return server
}

export type { Served }
