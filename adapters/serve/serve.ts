import type { Server } from 'node:http'
import type { AgentInterface } from '../../machines/protocol/card.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { Runtime } from '../../runtime/index.ts'
import {
  checkOptions,
  objectSuchAs,
  TRUE_OR_FALSE,
  withMethods,
  type OptionKinds
} from '../../runtime/primitives/options.ts'
import { type ServedRuntime, servedRuntime } from '../../runtime/runtime-options.ts'
import { agUiUrlAt, withAgUi, type AgUiOptions } from '../ag-ui/ag-ui-handler.ts'
import type { Handler } from '../entry/connection.ts'
import { checkInterfaces, INTERFACES, withScheme } from '../entry/interfaces.ts'
import { A_PATH, ADDRESS, checkHost, checkPath, listen, type Address } from '../entry/listen.ts'
import { cardAndPage, httpHandler, type HandlerOptions } from '../http/handler.ts'
import { DIALECTS, type Dialect } from '../json-rpc/dispatch.ts'
import { mcpUrlAt, withMcp, type McpOptions } from '../mcp/mcp-handler.ts'
import { attach, together, type Served } from '../websocket/attach.ts'
import { type PortBinding, type PortExtension, withExtension } from './port-extension.ts'
import { type MetricsOptions, serveMetrics } from './serve-metrics.ts'

/** The options of `serve`. */
export interface ServeOptions extends Address {
  /** The path of the agent. Default `/`. */
  readonly path?: string
  /** `false`: serves WebSocket alone, and over HTTP the card and a page for people. Default `true`. */
  readonly http?: boolean
  /**
   * The listening HTTP server of your app, in place of a port: serves WebSocket alone on it. What `httpHandler` makes
   * can answer its requests.
   */
  readonly server?: Server
  /** Older versions of A2A to support beside 1.0. Default none. */
  readonly dialects?: readonly Dialect[]
  /** Other interfaces of the agent. Cards list them after those of this port. Default none. */
  readonly interfaces?: readonly AgentInterface[]
  /** gRPC on another port: `grpc({ port: 50051 })` of `taskchart/grpc`. Cards list its interface last. Default none. */
  readonly grpc?: PortBinding
  /** Metrics for Prometheus on another port: `{ port: 9464 }`. Default none. */
  readonly metrics?: MetricsOptions
  /**
   * The agent over the Model Context Protocol, at `/mcp` below its path and below the path of each tenant: `true`, or
   * options. It needs `@modelcontextprotocol/server`. Default none.
   */
  readonly mcp?: boolean | McpOptions
  /**
   * The agent over AG-UI, for front ends such as CopilotKit, at `/ag-ui` below its path and below the path of each
   * tenant: `true`, or options. Default none.
   */
  readonly agui?: boolean | AgUiOptions
  /** An inspector of the agent: `inspect()` of `taskchart/inspector`. Default none. */
  readonly inspector?: PortExtension
}

const OPTIONS: OptionKinds<ServeOptions> = {
  ...ADDRESS,
  path: A_PATH,
  http: TRUE_OR_FALSE,
  server: withMethods(['address', 'on'], 'an HTTP server of node:http'),
  dialects: DIALECTS,
  interfaces: INTERFACES,
  grpc: withMethods(['open'], 'what grpc({ port }) of taskchart/grpc gives'),
  metrics: objectSuchAs('{ port: 9464 }'),
  mcp: [value => typeof value === 'boolean' || isObject(value), 'true, or options such as { waitMs: 50_000 }'],
  agui: [value => typeof value === 'boolean' || isObject(value), "true, or options such as { questions: 'message' }"],
  inspector: withMethods(['answer', 'open'], 'what inspect() of taskchart/inspector gives')
}

/** The options of a port that is opened here, which the server of an app does not have. */
const OF_OWN_PORT = ['port', 'host', 'http', 'mcp', 'agui', 'inspector'] as const

/**
 * Serves a runtime on one port: JSON-RPC and REST over HTTP, and JSON-RPC over WebSocket. All are at one URL, with the
 * card and a page for people. `grpc` and `metrics` open a port each. Resolves when it accepts connections; throws
 * TypeError for an unknown option, and when the options conflict or would expose an agent without `authenticate` to the
 * network.
 */
export async function serve(given: Runtime, options: ServeOptions = {}): Promise<Served> {
  const runtime = servedRuntime(given, 'serve')
  checkOptions(options, OPTIONS, 'serve', 'serve(runtime, { port: 4242 })')
  const conflicting = options.server && OF_OWN_PORT.find(name => options[name] !== undefined)
  if (conflicting !== undefined)
    throw new TypeError(`Give serve either ${conflicting}, or the server of your app, which has its own.`)
  checkInterfaces(options.interfaces)
  if (!options.server) checkPath(options.path ?? '/')
  const { grpc, metrics, ...here } = options
  const others: { close(): Promise<void> }[] = []
  try {
    const binding = await grpc?.open(runtime)
    if (binding) others.push(binding)
    const measured = metrics && (await serveMetrics(runtime, metrics))
    if (measured) others.push(measured)
    const interfaces = [...(here.interfaces ?? []), ...(binding?.interfaces ?? [])]
    const served = await serveHere(runtime, { ...here, interfaces })
    binding?.list(served.interfaces)
    let closing: Promise<void> | undefined
    const close = async () => void (await Promise.all([served, ...others].map(each => each.close())))
    return {
      ...served,
      ...(measured && { metricsUrl: measured.url }),
      drain: () => {
        served.drain()
        binding?.drain()
      },
      close: () => (closing ??= close())
    }
  } catch (error) {
    await Promise.all(others.map(each => each.close()))
    throw error
  }
}

/** Serves on the one port, or on the server of the app. */
async function serveHere(
  runtime: ServedRuntime,
  { path = '/', http = true, server, dialects = [], interfaces = [], mcp, agui, inspector, ...address }: ServeOptions
): Promise<Served> {
  if (server)
    return attach(runtime, listening(server, runtime), path, { webSocket: true, http: false, dialects, interfaces })
  const offer = { webSocket: true, http, dialects, interfaces }
  const answer = http
    ? httpHandler(runtime, { path, dialects, interfaces, webSocket: true })
    : cardAndPage(runtime, { path, ...offer })
  const beside = mcp ? withMcp(runtime, path, mcp === true ? {} : mcp, answer, inspector?.tap) : answer
  const handler = agui ? withAgUi(runtime, path, agui === true ? {} : agui, beside) : beside
  const own = await listen(address, runtime, withExtension(inspector, handler))
  const sockets = attach(runtime, own.server, path, offer, inspector?.tap)
  const closed = await inspector?.open(own.server, runtime, sockets.url).catch(async (error: unknown) => {
    await together(sockets, own).close()
    throw error
  })
  const served = together(sockets, closed ? { ...own, close: () => closed().then(() => own.close()) } : own)
  const url = withScheme(served.url, 'http')
  return {
    ...served,
    ...(http && { url }),
    ...(mcp && { mcpUrl: mcpUrlAt(url, mcp === true ? {} : mcp) }),
    ...(agui && { agUiUrl: agUiUrlAt(url, agui === true ? {} : agui) })
  }
}

/** The app's server, which must be listening, since its address goes into the card. */
function listening(server: Server, runtime: ServedRuntime): Server {
  const address = server.address()
  if (address === null) throw new TypeError('The server does not listen yet. Call serve when it does.')
  if (typeof address === 'object') checkHost(address.address, runtime)
  return server
}

export { dialect01, dialect03 } from '../legacy/index.ts'
export { webhooks } from '../push/webhooks.ts'
export { cardHandler } from '../http/agent-card.ts'
export { metricsText } from './serve-metrics.ts'
export { httpHandler }
export type { WebhookAnswer, WebhookPost, WebhookSender } from '../../runtime/ports/webhook-sender.ts'
export type { CardHandler } from '../http/agent-card.ts'
export type { PortBinding, PortExtension } from './port-extension.ts'
export type { Dialect, Handler, HandlerOptions, Served }
