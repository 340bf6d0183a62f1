import { resolve } from 'node:path'
import { WORK_FAILED } from '../../../runtime/contexts/observers.ts'
import type { Logger } from '../../../runtime/ports/logger.ts'
import { redacted } from '../../../runtime/ports/redact.ts'
import { LOOPBACK_ORIGINS } from '../../../runtime/primitives/authority.ts'
import { drawChart } from '../../drawing/chart-drawing.ts'
import { answered } from '../../entry/interfaces.ts'
import { coverageFile } from '../../inspector/coverage-file.ts'
import { builtPage } from '../../inspector/inspect.ts'
import { Inspector } from '../../inspector/inspector.ts'
import { loadStately } from '../../inspector/stately/stately-sink.ts'
import { EXIT, usageError, type Command, type CommandError, type Io } from '../command.ts'
import type { AgentModule } from '../load-agent.ts'
import { LoopWatch } from '../process/loop-watch.ts'
import { park } from '../process/parking.ts'
import { aborted, surviveRejections } from '../process/process-events.ts'
import { registeredTelemetry } from '../process/telemetry.ts'
import { announcement, placesOf } from '../serve/announcement.ts'
import { openStore } from '../serve/open-store.ts'
import { checkLegacy } from '../serve/optional-bindings.ts'
import { listenError, readServeArguments, SERVE_OPTIONS, type ServeSettings } from '../serve/serve-options.ts'
import { jsonLine, oneLine, plain } from '../text/terminal-text.ts'
import { authorErrorText } from './author-error.ts'
import { serveDev } from './dev-server.ts'
import { ProofRun } from './proof-run.ts'
import { Reloader } from './reloader.ts'
import { TaskLog } from './task-log.ts'
import { TestRun } from './test-run.ts'

/** `taskchart dev`: serves an agent and reloads it when its files change. */
export const devCommand: Command = {
  usage:
    'taskchart dev AGENT.ts|js [--port 4242] [--host 127.0.0.1] [--api-key KEY] [--db FILE|URL] [--json] [--log text|json]',
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
    const module = await Promise.race([reloader.first(), aborted(io.signal)])
    if (module) await serve(module, reloader, settings, io)
  } finally {
    await reloader.close()
    undo()
  }
  return EXIT.ok
}

/** The settings with a log of text that leaves out the errors of the author's code, which the task log tells with their places in the source. */
function withoutAuthorErrors(settings: ServeSettings): ServeSettings {
  if (settings.log === 'json') return settings
  const { logger } = settings
  const quiet: Logger = {
    ...logger,
    error: (message, details) => (message === WORK_FAILED ? undefined : logger.error(message, details))
  }
  return { ...settings, runtimeOptions: module => ({ ...settings.runtimeOptions(module), logger: quiet }) }
}

/** Serves the agent, and its reloaded versions, until the signal aborts; then parks its work. Throws if the store has failed. */
async function serve(
  module: AgentModule,
  reloader: Reloader,
  settings: ServeSettings,
  { signal, clock, elapsedMs, cwd, stdout, stderr, colours }: Io
): Promise<void> {
  const { file, address, db, json, logger, log, legacy } = settings
  settings.runtimeOptions(module)
  if (legacy) await checkLegacy()
  const tested = coverageFile(resolve(cwd, file))
  const testRun = new TestRun(resolve(cwd, file))
  const proofRun = new ProofRun(resolve(cwd, file), file, clock)
  const inspector = new Inspector({
    redact: redacted,
    draw: drawChart,
    recordsAlways: true,
    coverage: () => tested.read(),
    test: told => testRun.start(told),
    prove: told => proofRun.start(told),
    page: builtPage,
    loadStately
  })
  const { store, broken } = await openStore(db, cwd, logger)
  const traced = await registeredTelemetry(logger)
  const watch = new LoopWatch({ clock, logger, elapsedMs })
  const crashed = (taskId: string, text: string) => inspector.crashed(taskId, text)
  const tasks = new TaskLog({
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
  const places = placesOf(
    module.agent,
    answered(served.url, hosts),
    served.interfaces,
    answered(inspector.pageUrl, hosts)
  )
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
    inspector.tell(details === '' ? message : `${message}\n${details}`)
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
  await aborted(AbortSignal.any([signal, broken]))
  watch.stop()
  unwatch()
  testRun.stop()
  proofRun.stop()
  await reloader.close()
  await park({ served, runtime: served.runtime, clock, logger, flush: traced?.flush })
  await store.close()
  broken.throwIfAborted()
}
