import type { Clock } from '../../runtime/ports/clock.ts'
import type { Terminal } from './text/terminal.ts'

/** Where a command writes: `process.stdout` and `process.stderr`, or what a test gives. */
export interface Output {
  /** `written` is called once the text is out, for who waits with the next until then. */
  write(text: string, written?: () => void): void
}

/** What a command has of the process that runs it. */
export interface Io {
  /** Results only, so that they can be piped. */
  readonly stdout: Output
  /** Progress, hints and errors. */
  readonly stderr: Output
  /** The terminal that stderr is. Without one nothing that was written is rewritten. */
  readonly terminal?: Terminal | undefined
  /** The terminal that stdout is. */
  readonly screen?: Terminal | undefined
  /** What progress is timed with. */
  readonly clock: Clock
  /** Milliseconds since some moment, whatever becomes of the clock: those of `performance.now`, unless a test gives others. */
  readonly elapsedMs?: () => number
  /** Aborts when the user wants the command to stop. */
  readonly signal: AbortSignal
  /** What relative paths are relative to. */
  readonly cwd: string
}

/** One command of `taskchart`. */
export interface Command {
  readonly name: string
  /** What it does, in one line. */
  readonly summary: string
  /** How it is called, without `Usage:`. */
  readonly usage: string
  /** What its options and results are: the rest of its help. */
  readonly details: string
  /** Resolves with the exit code; rejects with what `main` reports. */
  run(args: readonly string[], io: Io): Promise<number>
}

/** The exit codes of all commands. */
export const EXIT = {
  /** Answered, or the task is completed. */
  ok: 0,
  error: 1,
  usage: 2,
  /** The task failed, or was rejected or canceled. */
  unsuccessful: 3,
  /** The task waits for input or an authorization. */
  waiting: 4,
  /** Stopped by the user, as shells number it. */
  stopped: 130
} as const

/** The exit codes, as help explains them. */
export const EXIT_CODES = `Exit codes:
  0    answered, or the task is completed
  1    an error: no connection, a refusal, or another that is written to stderr
  2    wrong usage
  3    the task failed, or was rejected or canceled
  4    the task waits for input or authorization
  130  stopped with Ctrl-C; the task continues
`

/** A command that cannot do its work, and what the user can do about it. With the exit code `usage` the usage is shown too. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: number
  /** Lines for below the message, such as where in an agent's module an error was thrown. */
  readonly details: string

  constructor(message: string, { exitCode = EXIT.error, details = '', cause }: { exitCode?: number; details?: string; cause?: unknown } = {}) {
    super(message, { cause })
    this.exitCode = exitCode
    this.details = details
  }
}

/** A command that was called in a way that it does not know. */
export function usageError(message: string): CommandError {
  return new CommandError(message, { exitCode: EXIT.usage })
}
