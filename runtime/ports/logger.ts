import { redacted, redactedText } from './redact.ts'

/** A logger that gets to see no secrets, and whose own errors trouble nobody. */
export function guardedLogger(logger: Logger): Logger {
  return {
    warn: guarded((message, details) => logger.warn(message, details)),
    error: guarded((message, details) => logger.error(message, details)),
    info: guarded((message, details) => logger.info?.(message, details))
  }
}

function guarded(log: (...line: Parameters<Log>) => unknown): Log {
  return (message, details) => {
    try {
      const logged = log(redactedText(message), redacted(details) as Record<string, unknown>)
      // A logger may be an async function, whatever its type says.
      if (logged instanceof Promise) logged.catch(() => {})
    } catch {
      // There is nobody else to tell.
    }
  }
}

/** Writes one line: what happened, always the same words for the same thing, and what it happened to. */
export type Log = (message: string, details: Record<string, unknown>) => void

/**
 * Where the runtime reports what no caller hears of: errors in the author's code, words that a chart does not
 * allow, commits that failed. `details` may hold an `error`; it never holds messages, artifacts or credentials: what looks
 * like a secret, also within the texts of errors, is `[redacted]` before a logger sees it. What a logger throws is ignored.
 */
export interface Logger {
  warn(message: string, details: Record<string, unknown>): void
  error(message: string, details: Record<string, unknown>): void
  /** What is as it should be, such as that old tasks were removed. Left out, nobody hears of that. */
  info?(message: string, details: Record<string, unknown>): void
}

/** Writes to the console: the default. */
export const consoleLogger: Logger = {
  warn: (message, details) => console.warn(`taskchart: ${message}`, details),
  error: (message, details) => console.error(`taskchart: ${message}`, details)
}
