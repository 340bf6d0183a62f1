import { resolve } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../../runtime/ports/clock.ts'
import { type Logger, redactValue, WORK_FAILED } from '../../../runtime/ports/logger.ts'
import { LOOPBACK_ORIGINS } from '../../../runtime/primitives/authority.ts'
import { servedRuntime, type ServedRuntime } from '../../../runtime/runtime-options.ts'
import { createNode } from '../../../runtime/runtime.ts'
import type { Store } from '../../../runtime/store/store.ts'
import type { Observer } from '../../../runtime/telemetry-port.ts'
import { agUiUrlAt, withAgUi } from '../../ag-ui/ag-ui-handler.ts'
import { drawChart } from '../../drawing/chart-drawing.ts'
import { formOf, refusalAnswer } from '../../entry/answers.ts'
import type { Handler } from '../../entry/connection.ts'
import { acceptedUrl, withScheme } from '../../entry/interfaces.ts'
import { type Address, GOING, listen } from '../../entry/listen.ts'
import { acceptUpgrades, type UpgradeHandler } from '../../entry/upgrade-paths.ts'
import { httpHandler } from '../../http/handler.ts'
import { builtPage, Inspector } from '../../inspector/inspector.ts'
import { loadStately } from '../../inspector/stately.ts'
import { mcpUrlAt, withMcp } from '../../mcp/mcp-handler.ts'
import { withExtension } from '../../serve/port-extension.ts'
import { attach, type Served } from '../../websocket/attach.ts'
import { refuse } from '../../websocket/handshake.ts'
import { type Command, type CommandError, EXIT, type Io, usageError } from '../command.ts'
import { coverageFile, readExampleFile } from '../files.ts'
import type { AgentModule } from '../load-agent.ts'
import { LoopWatch } from '../process/loop-watch.ts'
import { whenAborted, park, surviveRejections, within } from '../process/process-events.ts'
import {
  announcement,
  checkLegacy,
  checkMcp,
  legacyDialects,
  listenError,
  placesOf,
  registeredTelemetry,
  type ServedTelemetry
} from '../serve/parts.ts'
import { readServeArguments, type RuntimeSettings, SERVE_OPTIONS, type ServeSettings } from '../serve/serve-options.ts'
import { openStore } from '../stores.ts'
import { jsonLine, oneLine, plain } from '../text/terminal.ts'
import { authorErrorText } from './author-error.ts'
import { Reloader } from './reloader.ts'
import { ProofRun, TestRun } from './runs.ts'
import { ConsoleTaskLog } from './task-log.ts'

/** `taskchart dev`: serves an agent and reloads it when its files change. */
export const devCommand: Command = {
  usage: [
    'taskchart dev AGENT.ts|js [--port 4242] [--host 127.0.0.1] [--mcp] [--api-key KEY] [--db FILE|URL] [--json] [--log text|json]'
  ],
  details: `Serves the agent of a module as taskchart serve does. A page on the same URL shows its tasks, its charts and what its
actors do. /stately shows the actors in Stately's inspector. When the module or a file that it imports is saved, it is loaded
again: tasks are restored as after a restart, and clients reconnect. If the new module does not load, the old one stays,
and stderr and the page show the error.

A line on stderr tells of each task when it ends or waits for its client. If its work throws, the terminal and the page show the
error and its place in your source. Clients hear only that there was one.

The page is open to everyone on this machine. With --api-key or an export authenticate, and on another --host, it requires
the printed URL, whose token changes on every start. Pages of this machine, such as that of vite dev, may call the
agent: --origin allows others.

${SERVE_OPTIONS}
Exit codes: 0 stopped, 1 an error, 2 wrong usage, 130 or 143 stopped at once by a second Ctrl-C or SIGTERM.
`,
  run
}

/** The options of `serve` that this command refuses, with the reason. */
const REFUSED = {
  grpc: 'does not speak gRPC. Use taskchart serve --grpc PORT.',
  node: 'is no node of a cluster. Use taskchart serve --node ADDRESS.',
  metrics: 'serves no metrics. Use taskchart serve --metrics PORT.',
  inspect: 'always serves the page of the inspector. Leave --inspect out.'
} satisfies Partial<Record<keyof ServeSettings, string>>

async function run(args: readonly string[], io: Io): Promise<number> {
  const settings = withoutAuthorErrors(await readServeArguments(args, io, [LOOPBACK_ORIGINS]))
  for (const [name, why] of Object.entries(REFUSED)) {
    const given = settings[name as keyof typeof REFUSED]
    if (given !== undefined && given !== false) throw usageError(`taskchart dev ${why}`)
  }
  const reloader = new Reloader(settings.file, io.cwd, io.clock)
  const undo = surviveRejections(process, settings.logger)
  // Maps the stacks of compiled agents to their source. Node and tsx do so for TypeScript that they read themselves.
  process.setSourceMapsEnabled(true)
  try {
    const module = await Promise.race([reloader.first(), whenAborted(io.signal)])
    if (module) await serve(module, reloader, settings, io)
  } finally {
    await reloader.close()
    undo()
  }
  return EXIT.ok
}

/**
 * The settings with a log of text that leaves out the errors of the author's code, which the task log prints with their
 * places in the source.
 */
function withoutAuthorErrors(settings: ServeSettings): ServeSettings {
  if (settings.log === 'json') return settings
  const { logger } = settings
  const quiet: Logger = {
    ...logger,
    error: (message, details) => (message === WORK_FAILED ? undefined : logger.error(message, details))
  }
  return { ...settings, runtimeOptions: module => ({ ...settings.runtimeOptions(module), logger: quiet }) }
}

/**
 * Serves the agent, and its reloaded versions, until the signal aborts; then parks its work. Throws if the store has
 * failed.
 */
async function serve(
  module: AgentModule,
  reloader: Reloader,
  settings: ServeSettings,
  { signal, clock, elapsedMs, cwd, stdout, stderr, colours }: Io
): Promise<void> {
  const { file, address, db, json, logger, log, legacy, mcp } = settings
  settings.runtimeOptions(module)
  if (legacy) await checkLegacy()
  if (mcp) checkMcp('--mcp')
  const tested = coverageFile(resolve(cwd, file))
  const testRun = new TestRun(resolve(cwd, file))
  const proofRun = new ProofRun(resolve(cwd, file), file, clock)
  const inspector = new Inspector({
    redact: redactValue,
    draw: drawChart,
    alwaysRecord: true,
    replays: true,
    coverage: () => tested.read(),
    example: () => readExampleFile(resolve(cwd, file), logger),
    test: report => testRun.start(report),
    prove: report => proofRun.start(report),
    page: builtPage,
    loadStately
  })
  const { store, broken } = await openStore(db, cwd, logger)
  const traced = await registeredTelemetry(logger)
  const watch = new LoopWatch({ clock, logger, elapsedMs })
  const crashed = (taskId: string, text: string) => inspector.crashed(taskId, text)
  const tasks = new ConsoleTaskLog({
    stderr,
    hasColours: colours.stderr,
    log,
    logger,
    errorText: error => authorErrorText(error, cwd),
    crashed
  })
  const served = await serveDev(
    { ...settings, store, clock, inspector, traced, observers: [watch, tasks] },
    module
  ).catch(async (error: unknown) => {
    watch.stop()
    await store.close()
    return listenError(address)(error)
  })
  const unwatch = tested.watch(() => void inspector.cover())
  const { hosts } = served.runtime.settings
  const places = {
    ...placesOf(module.agent, acceptedUrl(served.url, hosts), served.interfaces, acceptedUrl(inspector.pageUrl, hosts)),
    ...(mcp && { mcp: acceptedUrl(mcpUrlAt(served.url), hosts) }),
    agui: acceptedUrl(agUiUrlAt(served.url), hosts)
  }
  const needsKey = settings.runtimeOptions(module).authenticate !== undefined
  stdout.write(
    json
      ? jsonLine(places)
      : announcement(
          module.agent,
          places,
          needsKey,
          `When you save ${oneLine(file)}, or a file that it imports, it is loaded again. `
        )
  )

  const failed = (error: unknown) => {
    const { message, details = '' } = error as Error & Partial<Pick<CommandError, 'details'>>
    inspector.showReloadError(details === '' ? message : `${message}\n${details}`)
    stderr.write(
      `taskchart: ${plain(message)}\n${details === '' ? '' : `${plain(details)}\n`}The previous version stays loaded.\n`
    )
  }
  reloader.follow({
    loaded: async next => {
      const beganMs = performance.now()
      await served.replace(next)
      stderr.write(`${oneLine(file)} is loaded again (${Math.round(performance.now() - beganMs)} ms).\n`)
    },
    failed
  })
  await whenAborted(AbortSignal.any([signal, broken]))
  watch.stop()
  unwatch()
  testRun.stop()
  proofRun.stop()
  await reloader.close()
  await park({ served, runtime: served.runtime, clock, logger, flush: traced?.flush })
  await store.close()
  broken.throwIfAborted()
}

/**
 * The maximum time for the last commits of a replaced agent, and then for its stop. Slower cleanup continues beside the
 * new agent.
 */
const SETTLE_MS = 200
const STOP_MS = 200

/** The parts of a development server. */
export interface DevParts {
  readonly address: Address
  readonly legacy: ServeSettings['legacy']
  /** Whether the Model Context Protocol is spoken. Default false. */
  readonly mcp?: boolean
  /** Is not closed by the server. */
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
  readonly inspector: Inspector
  readonly traced: ServedTelemetry | undefined
  readonly runtimeOptions: (module: AgentModule) => RuntimeSettings
  /** They observe each runtime from its beginning, before its stored work continues. */
  readonly observers?: readonly Observer[]
}

/** A served agent with its inspector. `url` is an `http:` URL. */
export interface DevServed extends Served {
  /** The runtime of the newest agent. */
  readonly runtime: ServedRuntime
  /**
   * Serves another agent on the same port and over the same store. Its tasks are restored as after a restart. Clients
   * reconnect and resume, and inspector pages remain connected. Rejects, and changes nothing, if the module's exports
   * conflict with the options of the command.
   */
  replace(module: AgentModule): Promise<void>
}

/** Answers requests between two agents with an error after which clients retry. */
const nobody: Handler = async ({ method, url }) => refusalAnswer(GOING, {}, formOf(method, new URL(url).pathname))
const refusing: UpgradeHandler = (_, socket) => refuse(socket, GOING)

/** Serves an agent in development. Rejects when it cannot listen. */
export async function serveDev(
  { inspector, store, clock, logger, traced, address, ...parts }: DevParts,
  module: AgentModule
): Promise<DevServed> {
  // Each runtime closes its store; this one is shared by all of them.
  const kept: Store = { ...store, close: async () => {} }
  const runtimeOf = ({ agent }: AgentModule, settings: RuntimeSettings) => {
    const runtime = servedRuntime(
      createNode({
        agent,
        store: kept,
        clock,
        ...settings,
        ...(traced && { telemetry: traced.telemetry })
      }),
      'dev'
    )
    for (const observer of parts.observers ?? []) runtime.observe(observer)
    return runtime
  }
  let handler = nobody
  let runtime = runtimeOf(module, parts.runtimeOptions(module))
  const own = await listen(
    address,
    runtime,
    (request, served) => handler(request, served),
    () => runtime.health()
  ).catch(async (error: unknown) => {
    await runtime.close()
    throw error
  })

  /** Serves the runtime; `release` removes the handlers that refused requests meanwhile. */
  const place = async (release = () => {}) => {
    const dialects = parts.legacy ? await legacyDialects(runtime, parts.legacy) : []
    release()
    const answer = httpHandler(runtime, { dialects, webSocket: true })
    const beside = parts.mcp ? withMcp(runtime, '/', {}, answer) : answer
    handler = withExtension(inspector, withAgUi(runtime, '/', {}, beside))
    return attach(runtime, own.server, '/', { webSocket: true, http: true, dialects }, inspector.tap)
  }
  const undo = async (cause: unknown) => {
    await own.close()
    await runtime.close()
    throw cause
  }
  let sockets = await place().catch(undo)
  const closeInspector = await inspector.open(own.server, runtime, sockets.url).catch(async (error: unknown) => {
    await sockets.close()
    return undo(error)
  })

  const leave = async () => {
    sockets.drain()
    handler = withExtension(inspector, nobody)
    await within(clock, SETTLE_MS, runtime.settled())
    // Lets the answers to the last commits be written.
    await setImmediate()
    const closed = [sockets.close(), runtime.close()].map(closing =>
      closing.catch((error: unknown) => logger.error('not everything could be closed', { error }))
    )
    const release = acceptUpgrades(own.server, { path: '/' }, refusing, refusing)
    await within(clock, STOP_MS, Promise.all(closed))
    return release
  }
  const replace = async (next: AgentModule) => {
    const settings = parts.runtimeOptions(next)
    const release = await leave()
    runtime = runtimeOf(next, settings)
    sockets = await place(release)
    inspector.use(runtime, sockets.url)
  }
  return {
    url: withScheme(sockets.url, 'http'),
    interfaces: sockets.interfaces,
    get runtime() {
      return runtime
    },
    replace,
    drain: () => {
      sockets.drain()
      own.drain()
    },
    close: async () => {
      await sockets.close()
      await closeInspector()
      await own.close()
    }
  }
}
