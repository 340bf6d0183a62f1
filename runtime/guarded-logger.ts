import type { Logger, Log } from './logger.ts'
import { redactedText } from './redacted-text.ts'
import { redacted } from './redacting.ts'

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
