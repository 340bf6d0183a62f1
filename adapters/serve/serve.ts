import type { AgentInterface } from '../../machines/protocol/card.ts'
import type { Runtime } from '../../runtime/index.ts'
import { checkOptions, withMethods, type OptionKinds } from '../../runtime/primitives/options.ts'
import { checkRuntime } from '../../runtime/runtime-options.ts'
import type { Handler } from '../entry/connection.ts'
import { INTERFACES, withScheme } from '../entry/interfaces.ts'
import { A_PATH, ADDRESS, checkPath, listen, type Address } from '../entry/listen.ts'
import { httpHandler, type HandlerOptions } from '../http/handler.ts'
import { DIALECTS, type Dialect } from '../json-rpc/dialect.ts'
import { attach, together, type Served } from '../websocket/attach.ts'
import { withExtension, type SideApp, type PortBinding } from './side-app.ts'

/** The options of `serve`. */
export interface ServeOptions extends Address {
  /** The path of the agent. Default `/`. */
  readonly path?: string
  /** Older versions of A2A to support beside 1.0. Default none. */
  readonly dialects?: readonly Dialect[]
  /** Other interfaces of the agent. Cards list them after those of HTTP. Default none. */
  readonly interfaces?: readonly AgentInterface[]
  /** gRPC on another port: `grpc({ port: 50051 })` of `taskchart/grpc`. Cards list its interface last. Default none. */
  readonly grpc?: PortBinding
  /** An inspector of the agent: `inspect()` of `taskchart/inspector`. Default none. */
  readonly inspector?: SideApp
}

const OPTIONS: OptionKinds<ServeOptions> = {
  ...ADDRESS,
  path: A_PATH,
  dialects: DIALECTS,
  interfaces: INTERFACES,
  grpc: withMethods(['open'], 'what grpc({ port }) of taskchart/grpc gives'),
  inspector: withMethods(['answer', 'open'], 'what inspect() of taskchart/inspector gives')
}

/**
 * Serves a runtime on one port: JSON-RPC and REST over HTTP, and JSON-RPC over WebSocket. All are at one URL, with the
 * card and a page for people. With `grpc` it serves gRPC on a second port. Resolves when it accepts connections; throws
 * TypeError for an unknown option, and when this would expose an agent without `authenticate` to the network.
 */
export async function serve(runtime: Runtime, options: ServeOptions = {}): Promise<Served> {
  checkRuntime(runtime, 'serve')
  checkOptions(options, OPTIONS, 'serve', 'serve(runtime, { port: 4242 })')
  checkPath(options.path ?? '/')
  const { grpc, ...here } = options
  if (!grpc) return serveHere(runtime, here)
  const other = await grpc.open(runtime)
  const served = await serveHere(runtime, {
    ...here,
    interfaces: [...(here.interfaces ?? []), ...other.interfaces]
  }).catch(async (error: unknown) => {
    await other.close()
    throw error
  })
  other.list(served.interfaces)
  return {
    ...served,
    drain: () => {
      served.drain()
      other.drain()
    },
    close: async () => void (await Promise.all([served.close(), other.close()]))
  }
}

/** Serves everything on the one port. */
async function serveHere(
  runtime: Runtime,
  { path = '/', dialects = [], interfaces = [], inspector, ...address }: Omit<ServeOptions, 'grpc'>
): Promise<Served> {
  const own = await listen(
    address,
    runtime,
    withExtension(inspector, httpHandler(runtime, { path, dialects, interfaces, webSocket: true }))
  )
  const sockets = attach(
    runtime,
    own.server,
    path,
    { webSocket: true, http: true, dialects, interfaces },
    inspector?.tap
  )
  const closed = await inspector?.open(own.server, runtime, sockets.url).catch(async (error: unknown) => {
    await together(sockets, own).close()
    throw error
  })
  const served = together(sockets, closed ? { ...own, close: () => closed().then(() => own.close()) } : own)
  return { ...served, url: withScheme(served.url, 'http') }
}

export { cardHandler } from '../http/agent-card.ts'
export { httpHandler }
export type { CardHandler, CardHandlerOptions } from '../http/agent-card.ts'
export type { OpenBinding, PortBinding } from './side-app.ts'
export type { Handler, HandlerOptions, Served }
