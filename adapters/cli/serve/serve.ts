import { createRuntime, type Runtime } from '../../../runtime/runtime.ts'
import { answered } from '../../entry/interfaces.ts'
import { serve as serveRuntime, type Served } from '../../serve/serve.ts'
import { EXIT, type Command, type Io } from '../command.ts'
import { loadAgent, type AgentModule } from '../load-agent.ts'
import { LoopWatch } from '../process/loop-watch.ts'
import { park } from '../process/parking.ts'
import { aborted, surviveRejections } from '../process/process-events.ts'
import { registeredTelemetry } from '../process/telemetry.ts'
import { jsonLine } from '../text/terminal-text.ts'
import { announcement, placesOf } from './announcement.ts'
import { openStore } from './open-store.ts'
import { grpcFor, legacyDialects } from './optional-bindings.ts'
import { listenError, readServeArguments, SERVE_OPTIONS, type ServeSettings } from './serve-options.ts'

/** `taskchart serve`: serves the agent of a module until a signal stops it. */
export const serveCommand: Command = {
  name: 'serve',
  summary: 'serve an agent over WebSocket and HTTP',
  usage: 'taskchart serve AGENT.ts|js [--port 4242] [--host 127.0.0.1] [--grpc PORT] [--api-key KEY] [--db FILE] [--json] [--log text|json]',
  details: `The module's default export is the agent, made with defineAgent. An export authenticate identifies callers, and an
export authorize decides what they may do. Tasks are stored in memory, or in the file that --db names. Ctrl-C or SIGTERM
stops the server within 10 seconds: clients are notified, and work may finish its cleanup. A second one stops it at
once. If a tracer provider of OpenTelemetry is registered (NODE_OPTIONS='--import ./otel.js'), the agent is traced.

${SERVE_OPTIONS}  --grpc PORT     also speak gRPC on this port of the same host; 0 takes a free one. Needs the packages @a2a-js/sdk, @grpc/grpc-js and
                  @bufbuild/protobuf. The card lists it; --json gives it as grpc

Exit codes: 0 stopped, 1 an error, 2 wrong usage, 130 or 143 stopped at once by a second Ctrl-C or SIGTERM.
`,
  run
}

async function run(args: readonly string[], io: Io): Promise<number> {
  const settings = await readServeArguments(args, io)
  const undo = surviveRejections(process, settings.logger)
  try {
    const loaded = await Promise.race([loadAgent(settings.file, io.cwd), aborted(io.signal)])
    if (loaded) await serve(loaded, settings, io)
  } finally {
    undo()
  }
  return EXIT.ok
}

/** Serves the agent until the signal aborts; then parks its work. Throws if the store has failed. */
async function serve(module: AgentModule, { address, legacy, grpc, db, json, logger, runtimeOptions }: ServeSettings, { signal, clock, elapsedMs, cwd, stdout }: Io): Promise<void> {
  const { agent } = module
  const options = runtimeOptions(module)
  const { store, broken } = openStore(db, cwd, logger)
  const traced = await registeredTelemetry(logger)
  const runtime = createRuntime({ agent, store, clock, ...options, ...(traced && { telemetry: traced.telemetry }) })
  const served = await listen(runtime, address, legacy, grpc).catch(async (error: unknown) => {
    await runtime.close()
    throw error
  })
  const places = placesOf(agent, answered(served.url, runtime.settings.hosts), served.interfaces)
  stdout.write(json ? jsonLine(places) : announcement(agent, places, options.authenticate !== undefined))
  const watch = new LoopWatch({ clock, logger, elapsedMs })
  runtime.observe(watch)
  await aborted(AbortSignal.any([signal, broken]))
  watch.stop()
  await park({ served, runtime, clock, logger, flush: traced?.flush })
  broken.throwIfAborted()
}

async function listen(runtime: Runtime, address: ServeSettings['address'], legacy: boolean, grpcPort: number | undefined): Promise<Served> {
  const grpc = grpcPort === undefined ? {} : { grpc: await grpcFor({ ...address, port: grpcPort }) }
  const dialects = legacy ? await legacyDialects(runtime) : []
  return serveRuntime(runtime, { ...address, dialects, ...grpc }).catch(listenError(address))
}
