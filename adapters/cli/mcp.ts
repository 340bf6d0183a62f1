import { guardedLogger, type Logger } from '../../runtime/ports/logger.ts'
import { servedRuntime } from '../../runtime/runtime-options.ts'
import { createNode } from '../../runtime/runtime.ts'
import { refuseHost, serveHost, type HostPipe } from '../mcp/stdio.ts'
import { InUseError } from '../rows/damage.ts'
import { readArguments } from './arguments.ts'
import { EXIT, usageError, type Command, type Io } from './command.ts'
import { loadAgent, type AgentModule } from './load-agent.ts'
import { surviveRejections, whenAborted } from './process/process-events.ts'
import { checkMcp, readLogForm, registeredTelemetry } from './serve/parts.ts'
import { openStore } from './stores.ts'
import { oneLine } from './text/terminal.ts'

const OPTIONS = {
  db: { type: 'string' },
  principal: { type: 'string' },
  log: { type: 'string', default: 'text' }
} as const

/** `taskchart mcp`: the agent as a program of a host that speaks the Model Context Protocol. */
export const mcpCommand: Command = {
  usage: ['taskchart mcp AGENT.ts|js [--db FILE|URL] [--principal NAME] [--log text|json]'],
  details: `A host starts this program, and speaks the Model Context Protocol with it over stdin and stdout. Add it to a host:

  claude mcp add barista -- npx taskchart mcp agent.ts --db tasks.db

Nothing but messages of the protocol is written to stdout, also if the agent's module prints something: that goes to
stderr, as the log does. When the host closes stdin, the program ends. With --db the tasks stay in the file, and go on when it is
opened again. If a tracer provider of OpenTelemetry is registered, the agent is traced. For tasks that last, and for several hosts, serve the agent instead: taskchart serve AGENT --mcp --db FILE.

  --db FILE|URL   store tasks in this SQLite file, or in the PostgreSQL database of a postgres: URL. Default: in memory, so
                  that tasks end with the host
  --principal NAME  the name of the host's user in the agent. It sees the tasks of this name only. Default: anonymous, as
                  that of a server without authentication
  --log FORM      the form of the log on stderr: text (the default), or json

Exit codes: 0 the host has closed stdin, or stopped, 1 an error, 2 wrong usage.
`,
  run
}

async function run(args: readonly string[], io: Io): Promise<number> {
  const {
    values: { db, principal, log },
    positionals: [file]
  } = readArguments(args, OPTIONS, ['AGENT.ts|js'])
  if (principal === '') throw usageError('--principal takes a name.')
  checkMcp('taskchart mcp')
  const logger = guardedLogger(readLogForm(log)(io.stderr, io.clock))
  // Before anything of the author's runs.
  const { write, undo } = io.divertStdout()
  const stop = surviveRejections(process, logger)
  try {
    const module = await Promise.race([loadAgent(file, io.cwd), whenAborted(io.signal)])
    const pipe: HostPipe = { lines: linesOf(io), write: line => write(`${line}\n`) }
    if (module) await serve(module, { db, principal, logger }, pipe, io)
  } finally {
    stop()
    undo()
  }
  return EXIT.ok
}

interface HostSettings {
  readonly db: string | undefined
  readonly principal: string | undefined
  readonly logger: Logger
}

async function serve(
  { agent, localModules, authorize }: AgentModule,
  { db, principal, logger }: HostSettings,
  pipe: HostPipe,
  { cwd, clock, stderr }: Io
): Promise<void> {
  const opened = await openStore(db, cwd, logger).catch((error: unknown) => inUseText(error, db))
  if (typeof opened === 'string') {
    stderr.write(`taskchart: ${oneLine(opened)}\n`)
    return refuseHost(pipe, opened)
  }
  if (db === undefined)
    stderr.write('taskchart: The tasks are in memory, and end with the host. To keep them, add --db FILE.\n')
  const traced = await registeredTelemetry(logger)
  const runtime = servedRuntime(
    createNode({
      agent,
      store: opened.store,
      clock,
      logger,
      localModules,
      ...(authorize && { authorize }),
      ...(traced && { telemetry: traced.telemetry })
    }),
    'mcp'
  )
  try {
    await Promise.race([serveHost(runtime, pipe, { principal }), whenAborted(opened.broken)])
  } finally {
    await runtime.close()
    await traced?.flush()
  }
  opened.broken.throwIfAborted()
}

/** The advice if another process has the file. Throws any other error. */
function inUseText(error: unknown, db = ''): string {
  if (!(error instanceof InUseError)) throw error
  return `${error.refusal} Two hosts cannot each start a program on one file. Run: taskchart serve AGENT --mcp --db ${db} and give the hosts its address, such as http://127.0.0.1:4242/mcp.`
}

/** The lines of stdin, until it ends or the command is stopped. */
async function* linesOf({ input, signal }: Io): AsyncGenerator<string, void, undefined> {
  for (;;) {
    const line = await input.ask('', signal)
    if (line === undefined) return
    if (line.trim() !== '') yield line
  }
}
