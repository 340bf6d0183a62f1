import type { Clock } from '../../runtime/ports/clock.ts'

/** An output stream of a command: `process.stdout`, `process.stderr`, or a substitute in a test. */
export interface Output {
  /** `written` is called after the text is flushed, so that a caller can respect backpressure. */
  write(text: string, written?: () => void): void
}

/** The user's side of a command that talks: a terminal, or a pipe. */
export interface LineInput {
  readonly isTerminal: boolean
  /**
   * Resolves with the next line, or `undefined` at the end of the input and once `signal` aborts. Only a terminal shows
   * the prompt.
   */
  ask(prompt: string, signal: AbortSignal): Promise<string | undefined>
}

/** The command's access to the process: streams, environment, clock, signal and working folder. */
export interface Io {
  /** Results only, so that they can be piped. */
  readonly stdout: Output
  /** Progress, hints and errors. */
  readonly stderr: Output
  /**
   * From now on what others print to stdout goes to stderr: the command writes with `write`, until `undo`. Default: only
   * the command prints.
   */
  readonly divertStdout: () => { readonly write: (text: string) => void; readonly undo: () => void }
  /** The lines of stdin, which is not read before the first `ask`. */
  readonly input: LineInput
  /** Whether results, and progress and errors, have colours. */
  readonly colours: Colours
  /** The environment variables. */
  readonly env: Environment
  /** The terminal behind stderr. Without one, no line is ever rewritten. */
  readonly terminal?: Terminal | undefined
  /** The terminal behind stdout. */
  readonly screen?: Terminal | undefined
  /** Times progress output. */
  readonly clock: Clock
  /** A monotonic clock in milliseconds. Default: `performance.now`. */
  readonly elapsedMs?: () => number
  /** Aborts when the user stops the command. */
  readonly signal: AbortSignal
  /** The folder against which relative paths are resolved. */
  readonly cwd: string
}

/** One command of `taskchart`. Its name and summary are in the table in `commands`. */
export interface Command {
  /** The usage line, without `Usage:`. */
  readonly usage: string
  /** The words that may follow the name, such as `ls` and `show`. */
  readonly words?: readonly string[]
  /** The rest of the help: options and results. */
  readonly details: string
  /** Resolves with the exit code. `main` reports a rejection. */
  run(args: readonly string[], io: Io): Promise<number>
}

/** A command with its name and a summary in one line. */
export interface NamedCommand extends Command {
  readonly name: string
  readonly summary: string
}

export const EXIT = {
  /** The agent answered, or the task is completed. */
  ok: 0,
  error: 1,
  usage: 2,
  /** The task failed, or was rejected or canceled. */
  unsuccessful: 3,
  /** The task waits for input or authorization. */
  waiting: 4,
  /** Stopped by the user: 128 + SIGINT. */
  stopped: 130
} as const

/** The exit codes in the help texts. */
export const EXIT_CODES = `Exit codes:
  0    answered, or the task is completed
  1    an error, such as no connection or a refusal: see stderr
  2    wrong usage
  3    the task failed, or was rejected or canceled
  4    the task waits for input or authorization
  130  stopped with Ctrl-C; the task continues
`

/** An error with advice on what to write instead. With the exit code `usage`, the usage line is printed too. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: number
  /** Lines printed below the message, such as the stack frames of an agent's module. */
  readonly details: string

  constructor(
    message: string,
    { exitCode = EXIT.error, details = '', cause }: { exitCode?: number; details?: string; cause?: unknown } = {}
  ) {
    super(message, { cause })
    this.exitCode = exitCode
    this.details = details
  }
}

/** A CommandError for wrong arguments. */
export function usageError(message: string): CommandError {
  return new CommandError(message, { exitCode: EXIT.usage })
}

/** A terminal whose last line can be rewritten. */
export interface Terminal {
  /** Its current width, in characters. */
  readonly columns: number
  readonly hasColours: boolean
}

/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Whether an output shows colours. */
export interface Colours {
  readonly stdout: boolean
  readonly stderr: boolean
}
