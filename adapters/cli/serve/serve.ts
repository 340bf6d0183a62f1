import { servedRuntime, type ServedRuntime } from '../../../runtime/runtime-options.ts'
import { createNode } from '../../../runtime/runtime.ts'
import { acceptedUrl } from '../../entry/interfaces.ts'
import { PORTS } from '../../entry/listen.ts'
import { inspectorWith } from '../../inspector/inspect.ts'
import type { PortBinding, PortExtension } from '../../serve/port-extension.ts'
import { serveMetrics, type ServedMetrics } from '../../serve/serve-metrics.ts'
import { serve as serveRuntime, type Served } from '../../serve/serve.ts'
import { EXIT, type Command, type Io } from '../command.ts'
import { loadAgent, type AgentModule } from '../load-agent.ts'
import { LoopWatch } from '../process/loop-watch.ts'
import { whenAborted, park, surviveRejections } from '../process/process-events.ts'
import { jsonLine } from '../text/terminal.ts'
import {
  announcement,
  checkLegacy,
  checkMcp,
  grpcFor,
  listenForNodes,
  legacyDialects,
  listenError,
  openNode,
  placesOf,
  registeredTelemetry,
  SECRET_VARIABLE
} from './parts.ts'
import { readServeArguments, SERVE_OPTIONS, type ServeSettings } from './serve-options.ts'

/** `taskchart serve`: serves the agent of a module until a signal stops it. */
export const serveCommand: Command = {
  usage: [
    'taskchart serve AGENT.ts|js [--port 4242] [--host 127.0.0.1] [--grpc PORT] [--mcp] [--agui] [--api-key KEY] [--db FILE|URL] [--node ADDRESS] [--metrics [HOST:]PORT] [--inspect] [--json] [--log text|json]'
  ],
  details: `The module's default export is the agent, made with defineAgent. An export authenticate identifies callers, and an
export authorize decides what they may do. Tasks are stored in memory, or in the file that --db names. Ctrl-C or SIGTERM
stops the server within 10 seconds: clients are notified, and work may finish its cleanup. A second one stops it at
once. If a tracer provider of OpenTelemetry is registered (NODE_OPTIONS='--import ./otel.js'), the agent is traced.

${SERVE_OPTIONS}  --node ADDRESS  serve as one node of a cluster that shares the database of --db; other nodes reach this one at ADDRESS, such as
                  ws://10.0.0.7:4243. All nodes need the same secret in TASKCHART_CLUSTER_SECRET, unless ADDRESS is on loopback
  --grpc PORT     also speak gRPC on this port of the same host; 0 takes a free one. Needs the packages @a2a-js/sdk, @grpc/grpc-js and
                  @bufbuild/protobuf. The card lists it; --json gives it as grpc
  --metrics [HOST:]PORT  serve metrics for Prometheus at /metrics of this port, on 127.0.0.1 unless a host is named. Everyone who reaches
                  the port can read them. --json gives the URL as metrics
  --inspect       serve the inspector's page at / instead of the plain one. It shows everything that tasks contain, so with --api-key or
                  away from loopback its URL has a token; --json gives the URL as page

Exit codes: 0 stopped, 1 an error, 2 wrong usage, 130 or 143 stopped at once by a second Ctrl-C or SIGTERM.
`,
  run
}

async function run(args: readonly string[], io: Io): Promise<number> {
  const settings = await readServeArguments(args, io)
  const undo = surviveRejections(process, settings.logger)
  try {
    const loaded = await Promise.race([loadAgent(settings.file, io.cwd), whenAborted(io.signal)])
    if (loaded) await serve(loaded, settings, io)
  } finally {
    undo()
  }
  return EXIT.ok
}

/**
 * Serves the agent until the signal aborts; then parks its work. Never binds the next port, since its clients use this
 * one. Throws if the store has failed.
 */
async function serve(
  module: AgentModule,
  {
    address: { host, port = PORTS[0] },
    legacy,
    mcp,
    agui,
    grpc: grpcPort,
    metrics,
    inspect: isInspected,
    db,
    node,
    json,
    logger,
    runtimeOptions
  }: ServeSettings,
  { signal, clock, elapsedMs, cwd, env, stdout }: Io
): Promise<void> {
  const { agent } = module
  const options = runtimeOptions(module)
  // Before anything is opened.
  const grpc = grpcPort === undefined ? {} : { grpc: await grpcFor({ host, port: grpcPort }) }
  if (legacy) await checkLegacy()
  if (mcp) checkMcp('--mcp')
  const opened = await openNode({ db, node }, cwd, logger, env[SECRET_VARIABLE])
  const { broken } = opened
  const traced = await registeredTelemetry(logger)
  const runtime = servedRuntime(
    createNode({
      agent,
      store: opened.store,
      ...(opened.node && { cluster: opened.node }),
      clock: opened.node?.clock ?? clock,
      ...options,
      ...(traced && { telemetry: traced.telemetry })
    }),
    'serve'
  )
  const closeAll = async (cause: unknown) => {
    await runtime.close()
    await measured?.close()
    throw cause
  }
  let measured: ServedMetrics | undefined
  await listenForNodes(opened, node).catch(closeAll)
  if (metrics)
    measured = await serveMetrics(runtime, metrics)
      .catch(listenError(metrics, { host: '--metrics', port: '--metrics' }))
      .catch(closeAll)
  const inspector = isInspected ? inspectorWith({}) : undefined
  const served = await listen(runtime, { port, host }, { legacy, mcp, agui, ...grpc, inspector }).catch(closeAll)
  const { hosts } = runtime.settings
  const places = {
    ...placesOf(
      agent,
      acceptedUrl(served.url, hosts),
      served.interfaces,
      inspector && acceptedUrl(inspector.pageUrl, hosts)
    ),
    ...(served.mcpUrl !== undefined && { mcp: acceptedUrl(served.mcpUrl, hosts) }),
    ...(served.agUiUrl !== undefined && { agui: acceptedUrl(served.agUiUrl, hosts) }),
    ...(measured && { metrics: measured.url })
  }
  // It may have been stopped while it opened.
  if (!signal.aborted)
    stdout.write(json ? jsonLine(places) : announcement(agent, places, options.authenticate !== undefined))
  const watch = new LoopWatch({ clock, logger, elapsedMs })
  runtime.observe(watch)
  await whenAborted(AbortSignal.any([signal, broken]))
  watch.stop()
  await park({ served, runtime, clock, logger, flush: traced?.flush })
  await measured?.close()
  broken.throwIfAborted()
}

/** The additions to the bindings of A2A 1.0. */
interface Beside {
  readonly legacy: ServeSettings['legacy']
  readonly mcp: boolean
  readonly agui: boolean
  readonly grpc?: PortBinding
  readonly inspector: PortExtension | undefined
}

async function listen(
  runtime: ServedRuntime,
  address: { readonly port: number; readonly host: string },
  { legacy, mcp, agui, grpc, inspector }: Beside
): Promise<Served> {
  const dialects = legacy ? await legacyDialects(runtime, legacy) : []
  return serveRuntime(runtime, {
    ...address,
    dialects,
    mcp,
    agui,
    ...(grpc && { grpc }),
    ...(inspector && { inspector })
  }).catch(listenError(address))
}
