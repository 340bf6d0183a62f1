import { createRequire } from 'node:module'
import { cardCommand } from './card/card.ts'
import { CommandError, EXIT, EXIT_CODES, usageError, type Command, type Io } from './command.ts'
import { dbCommand } from './db.ts'
import { devCommand } from './dev/dev.ts'
import { graphCommand } from './graph.ts'
import { serveCommand } from './serve/serve.ts'
import { sendCommand } from './talk/send.ts'
import { watchCommand } from './talk/watch.ts'
import { tasksCommand } from './tasks/command.ts'
import { pathsCommand } from './test/paths.ts'
import { replayCommand } from './test/replay.ts'
import { testCommand } from './test/test.ts'
import { oneLine, plain } from './text/terminal-text.ts'

const COMMANDS: readonly Command[] = [devCommand, serveCommand, sendCommand, watchCommand, cardCommand, tasksCommand, dbCommand, replayCommand, pathsCommand, testCommand, graphCommand]
const USAGE = 'taskchart COMMAND …, where COMMAND is dev, serve, send, watch, card, tasks, db, replay, paths, test, graph or help'

/** Runs `taskchart` with these arguments and resolves with its exit code. Writes errors to stderr; never rejects. */
export async function main(argv: readonly string[], io: Io): Promise<number> {
  const [name, ...args] = argv
  const command = COMMANDS.find(command => command.name === name)
  try {
    if (command && !asksForHelp(args)) return await command.run(args, io)
    io.stdout.write(command ? helpOf(command) : answer(name, args))
    return EXIT.ok
  } catch (error) {
    return io.signal.aborted ? EXIT.stopped : report(error, command, io)
  }
}

/** The output when no command runs: help, or the version. */
function answer(name: string | undefined, [topic]: readonly string[]): string {
  if (name === '--version') return `${version()}\n`
  if (name === undefined || name === '--help' || name === '-h' || (name === 'help' && topic === undefined)) return overview()
  const wanted = name === 'help' ? topic : name
  const found = name === 'help' ? COMMANDS.find(({ name }) => name === topic) : undefined
  if (found) return helpOf(found)
  throw usageError(wanted?.startsWith('-') ? `There is no option ${wanted} here.` : `There is no command ${wanted}.`)
}

function asksForHelp(args: readonly string[]): boolean {
  const options = args.includes('--') ? args.slice(0, args.indexOf('--')) : args
  return options.includes('--help') || options.includes('-h')
}

function report(error: unknown, command: Command | undefined, { stderr }: Io): number {
  const { exitCode = EXIT.error, details = '' } = error instanceof CommandError ? error : {}
  stderr.write(`taskchart: ${oneLine(error instanceof Error ? error.message : String(error))}\n`)
  if (details !== '') stderr.write(`${plain(details)}\n`)
  if (exitCode === EXIT.usage) stderr.write(`Usage: ${command?.usage ?? USAGE}\n`)
  return exitCode
}

function overview(): string {
  return `taskchart: serve A2A agents and talk to them.

${COMMANDS.map(({ name, summary }) => `  taskchart ${name.padEnd(6)} ${summary}`).join('\n')}
  taskchart help COMMAND

  --help     this help
  --version  the version

${EXIT_CODES}`
}

function helpOf({ summary, usage, details }: Command): string {
  return `${usage}\n\n${summary.charAt(0).toUpperCase()}${summary.slice(1)}.\n${details}`
}

function version(): string {
  const { version } = createRequire(import.meta.url)('taskchart/package.json') as { version: string }
  return version
}
