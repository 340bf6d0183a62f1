import { resolve } from 'node:path'
import { redacted } from '../../../runtime/ports/redact.ts'
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
import { listenError, readServeArguments, SERVE_OPTIONS, type ServeSettings } from '../serve/serve-options.ts'
import { jsonLine, oneLine, plain } from '../text/terminal-text.ts'
import { serveDev } from './dev-server.ts'
import { Reloader } from './reloader.ts'

/** `taskchart dev`: serves an agent and reloads it when its files change. */
export const devCommand: Command = {
  name: 'dev',
  summary: 'serve an agent while you write it: watch it live, reload it when you save',
  usage: 'taskchart dev AGENT.ts|js [--port 4242] [--host 127.0.0.1] [--api-key KEY] [--db FILE] [--json] [--log text|json]',
  details: `Serves the agent of a module as taskchart serve does. A page on the same URL shows its tasks, its charts and what its
actors do. /stately shows the actors in Stately's inspector. When the module or a file that it imports is saved, it is loaded
again: tasks are restored as after a restart, and clients reconnect. If the new module does not load, the old one stays,
and stderr and the page show the error.

The page is open to everyone on this machine. With --api-key or an export authenticate, and on another --host, it requires
the printed URL, whose token changes on every start.

${SERVE_OPTIONS}
Exit codes: 0 stopped, 1 an error, 2 wrong usage, 130 or 143 stopped at once by a second Ctrl-C or SIGTERM.
`,
  run
}

async function run(args: readonly string[], io: Io): Promise<number> {
  const settings = await readServeArguments(args, io)
  if (settings.grpc !== undefined) throw usageError('taskchart dev does not speak gRPC. Use taskchart serve --grpc PORT.')
  const reloader = new Reloader(settings.file, io.cwd, io.clock)
  const undo = surviveRejections(process, settings.logger)
  try {
    const module = await Promise.race([reloader.first(), aborted(io.signal)])
    if (module) await serve(module, reloader, settings, io)
  } finally {
    await reloader.close()
    undo()
  }
  return EXIT.ok
}

/** Serves the agent, and its reloaded versions, until the signal aborts; then parks its work. Throws if the store has failed. */
async function serve(module: AgentModule, reloader: Reloader, settings: ServeSettings, { signal, clock, elapsedMs, cwd, stdout, stderr }: Io): Promise<void> {
  const { file, address, db, json, logger } = settings
  settings.runtimeOptions(module)
  const tested = coverageFile(resolve(cwd, file))
  const inspector = new Inspector({ redact: redacted, draw: drawChart, coverage: () => tested.read(), page: builtPage, loadStately })
  const { store, broken } = openStore(db, cwd, logger)
  const traced = await registeredTelemetry(logger)
  const served = await serveDev({ ...settings, store, clock, inspector, traced }, module).catch(async (error: unknown) => {
    await store.close()
    return listenError(address)(error)
  })
  const unwatch = tested.watch(() => void inspector.cover())
  const { hosts } = served.runtime.settings
  const places = placesOf(module.agent, answered(served.url, hosts), served.interfaces, answered(inspector.pageUrl, hosts))
  const needsKey = settings.runtimeOptions(module).authenticate !== undefined
  stdout.write(json ? jsonLine(places) : announcement(module.agent, places, needsKey, `When you save ${oneLine(file)}, or a file that it imports, it is loaded again. Ctrl-C stops it.`))

  const watch = new LoopWatch({ clock, logger, elapsedMs })
  served.runtime.observe(watch)
  const failed = (error: unknown) => {
    const { message, details = '' } = error as Error & Partial<Pick<CommandError, 'details'>>
    inspector.tell(details === '' ? message : `${message}\n${details}`)
    stderr.write(`taskchart: ${plain(message)}\n${details === '' ? '' : `${plain(details)}\n`}The previous version stays loaded.\n`)
  }
  reloader.follow({
    loaded: async next => {
      const beganMs = performance.now()
      await served.replace(next)
      served.runtime.observe(watch)
      stderr.write(`${oneLine(file)} is loaded again (${Math.round(performance.now() - beganMs)} ms).\n`)
    },
    failed
  })
  await aborted(AbortSignal.any([signal, broken]))
  watch.stop()
  unwatch()
  await reloader.close()
  await park({ served, runtime: served.runtime, clock, logger, flush: traced?.flush })
  await store.close()
  broken.throwIfAborted()
}
