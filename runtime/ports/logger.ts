import { redacted, redactedText } from './redact.ts'

/** Wraps a logger: redacts secrets, and ignores the logger's own errors. */
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
      // A logger may be async, despite its type.
      if (logged instanceof Promise) logged.catch(() => {})
    } catch {
      // An error of the logger cannot be logged.
    }
  }
}

/** Writes one line: a constant message per kind of event, and its details. */
export type Log = (message: string, details: Record<string, unknown>) => void

/**
 * Receives reports that no caller gets: errors in the author's code, dropped words, failed commits. `details` may have an `error`, but
 * never messages, artifacts or credentials. Anything that looks like a secret, even within error texts, is replaced by `[redacted]`.
 * Errors of the logger are ignored.
 */
export interface Logger {
  warn(message: string, details: Record<string, unknown>): void
  error(message: string, details: Record<string, unknown>): void
  /** Optional. Receives normal events, such as the deletion of old tasks. */
  info?(message: string, details: Record<string, unknown>): void
}

/** Writes to the console: the default. */
export const consoleLogger: Logger = {
  warn: (message, details) => console.warn(`taskchart: ${message}`, details),
  error: (message, details) => console.error(`taskchart: ${message}`, details)
}
