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
  readonly divertStdout: () => {
    readonly write: (text: string, written?: () => void) => void
    readonly undo: () => void
  }
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
  /** The lines of the usage, without `Usage:`: one for each form of the command. */
  readonly usage: readonly string[]
  /** The words that may follow the name, such as `ls` and `show`. */
  readonly words?: readonly string[]
  /** Whether `--json` is short for `-o json --stream`, so that an error is a line of JSON, too. */
  readonly hasOutputForms?: true
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

/** The exit codes. A number means the same in every command. */
export const EXIT = {
  /** The command has done its job, whatever became of the task. */
  ok: 0,
  error: 1,
  usage: 2,
  /** The agent, or its card, was not reached. */
  unreachable: 3,
  /** Credentials are missing, or were refused. */
  credentials: 4,
  timeout: 5,
  /**
   * With `--exit-status` the task failed, or was rejected or canceled; or a test failed, a property is refuted, a task
   * cannot go on.
   */
  unsuccessful: 10,
  /**
   * With `--exit-status` the task waits for input or authorization; or it cannot be said, or a task goes on otherwise.
   */
  waiting: 11,
  /** Stopped by the user: 128 + SIGINT. */
  stopped: 130
} as const

/** The exit codes in the help texts. */
export const EXIT_CODES = `Exit codes:
  0    done, whatever became of the task
  1    an error, such as a refusal: see stderr
  2    wrong usage
  3    the agent, or its card, was not reached
  4    credentials are missing, or were refused
  5    the time of --timeout has passed; the task continues
  10   with --exit-status: the task failed, or was rejected or canceled
  11   with --exit-status: the task waits for input or authorization
  130  stopped with Ctrl-C; the task continues
`

/** The names of errors that A2A does not name, as a2a-cli has them. */
export type CliErrorCode =
  | 'A2ACLI_ERR_AUTH_FAILED'
  | 'A2ACLI_ERR_CARD_INVALID'
  | 'A2ACLI_ERR_CARD_NOT_FOUND'
  | 'A2ACLI_ERR_CREDENTIALS_MISSING'
  | 'A2ACLI_ERR_INTERNAL'
  | 'A2ACLI_ERR_TIMEOUT'
  | 'A2ACLI_ERR_UNREACHABLE'
  | 'A2ACLI_ERR_USAGE'

/** The members of a `CommandError` besides its message. */
export interface CommandErrorOptions {
  /** Default: that of the cause. */
  readonly exitCode?: number
  /** The name of the error for programs. Default: that of the cause. */
  readonly code?: CliErrorCode
  /** Lines printed below the message, such as the stack frames of an agent's module. */
  readonly details?: string
  /** Advice for programs: a command, or the end of the message. */
  readonly hint?: string | undefined
  readonly cause?: unknown
}

/** An error with advice on what to write instead. With the exit code `usage`, the usage is printed too. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: number | undefined
  readonly code: CliErrorCode | undefined
  readonly details: string
  readonly hint: string | undefined

  constructor(message: string, { exitCode, code, details = '', hint, cause }: CommandErrorOptions = {}) {
    super(message, { cause })
    this.exitCode = exitCode
    this.code = code
    this.details = details
    this.hint = hint
  }
}

/** A CommandError for wrong arguments. */
export function usageError(message: string): CommandError {
  return new CommandError(message, { exitCode: EXIT.usage, code: 'A2ACLI_ERR_USAGE' })
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
