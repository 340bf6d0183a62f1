import { createRequire } from 'node:module'
import { asksForJson } from './arguments.ts'
import {
  CommandError,
  EXIT,
  EXIT_CODES,
  usageError,
  type Command,
  type Io,
  type NamedCommand,
  type Colours
} from './command.ts'
import { COMMANDS, loadCommand } from './commands.ts'
import { envelopeOf, failureOf, type Failure } from './failures.ts'
import { didYouMean, wrapHelp } from './text/format.ts'
import { jsonLine, oneLine, plain, readColours, styleText, thrownText, withColours } from './text/terminal.ts'

const USAGE = [`taskchart COMMAND …, where COMMAND is ${COMMANDS.map(({ name }) => name).join(', ')} or help`]

/** The maximum width of a help text, in columns. */
const WIDEST = 120

/** Runs `taskchart` with these arguments and resolves with its exit code. Writes errors to stderr; never rejects. */
export async function main(argv: readonly string[], given: Omit<Io, 'colours'>): Promise<number> {
  const usual: Colours = { stdout: given.screen?.hasColours ?? false, stderr: given.terminal?.hasColours ?? false }
  let io: Io = { ...given, colours: usual }
  let command: NamedCommand | undefined
  try {
    const {
      colours,
      rest: [name, ...args]
    } = readColours(argv, usual)
    io = {
      ...io,
      colours,
      terminal: withColours(given.terminal, colours.stderr),
      screen: withColours(given.screen, colours.stdout)
    }
    const isHelp = name === 'help' || isHelpFlag(name)
    const topic = args.find(arg => arg !== 'help' && !isHelpFlag(arg))
    const named = isHelp ? topic : name
    const entry = COMMANDS.find(({ name, alias }) => named !== undefined && (name === named || alias === named))
    command = entry && (await loadCommand(entry))
    if (command && !isHelp && !asksForHelp(args)) {
      if (!entry?.loadsAgent) return await command.run(args, io)
      const stdout = io.divertStdout()
      io = { ...io, stdout }
      return await command.run(args, io).finally(stdout.undo)
    }
    const columns = Math.min(given.screen?.columns ?? WIDEST, WIDEST)
    io.stdout.write(wrapHelp(command ? helpOf(command) : answer(named), columns))
    return EXIT.ok
  } catch (error) {
    const failure = io.signal.aborted ? stoppedFailure(error) : report(error, command, io)
    if (asksForJson(argv, command?.hasOutputForms ?? false)) io.stdout.write(jsonLine(envelopeOf(failure)))
    return failure.exitCode
  }
}

/** The output without a command: the overview, or the version. Throws a usage error for a name that is none. */
function answer(name: string | undefined): string {
  if (name === '--version') return `${version()}\n`
  if (name === undefined) return overview()
  if (name.startsWith('-'))
    throw usageError(`There is no option ${name} here. ${didYouMean(name, ['--help', '--version', '--color'])}`)
  throw usageError(`There is no command ${name}. ${didYouMean(name, [...COMMANDS.map(({ name }) => name), 'help'])}`)
}

function isHelpFlag(arg: string | undefined): boolean {
  return arg === '--help' || arg === '-h'
}

function asksForHelp(args: readonly string[]): boolean {
  const options = args.includes('--') ? args.slice(0, args.indexOf('--')) : args
  return options.some(isHelpFlag)
}

/** The failure of a command that the user stopped. */
function stoppedFailure(error: unknown): Failure {
  return { ...failureOf(error), exitCode: EXIT.stopped, message: 'The command was stopped with Ctrl-C.', a2aCode: null }
}

/** Writes an error to stderr. Returns it for programs. */
function report(error: unknown, command: Command | undefined, { stderr, colours }: Io): Failure {
  const failure = failureOf(error)
  const details = error instanceof CommandError ? error.details : ''
  const usage = failure.exitCode === EXIT.usage ? usageText(command?.usage ?? USAGE) : undefined
  stderr.write(`${styleText(colours.stderr, 'red', 'taskchart:')} ${oneLine(thrownText(error))}\n`)
  if (details !== '') stderr.write(`${plain(details)}\n`)
  if (usage !== undefined) stderr.write(`${usage}\n`)
  return usage === undefined ? failure : { ...failure, hint: usage }
}

function overview(): string {
  const width = Math.max(...COMMANDS.map(({ name }) => name.length))
  return `taskchart: serve A2A agents and talk to them.

${COMMANDS.map(({ name, summary }) => `  taskchart ${name.padEnd(width)} ${summary}`).join('\n')}
  taskchart help COMMAND

  --help        this help; after a command, its help
  --version     the version
  --color WHEN  colours: always, never, or auto (the default): on a terminal, unless NO_COLOR is set

${EXIT_CODES}`
}

/** The forms of a command, one below the other. */
function usageText(forms: readonly string[]): string {
  return `Usage: ${forms.join('\n       ')}`
}

function helpOf({ summary, usage, details }: NamedCommand): string {
  return `${usageText(usage)}\n\n${summary.charAt(0).toUpperCase()}${summary.slice(1)}.\n${details}`
}

function version(): string {
  const { version } = createRequire(import.meta.url)('taskchart/package.json') as { version: string }
  return version
}
