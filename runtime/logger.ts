/**
 * Where the runtime reports what no caller hears of: errors in the author's code, words that a chart does not
 * allow, commits that failed. `details` may hold an `error`; it never holds messages, artifacts or credentials.
 */
export interface Logger {
  warn(message: string, details: Record<string, unknown>): void
  error(message: string, details: Record<string, unknown>): void
}

/** Writes to the console: the default. */
export const consoleLogger: Logger = {
  warn: (message, details) => console.warn(`taskchart: ${message}`, details),
  error: (message, details) => console.error(`taskchart: ${message}`, details)
}
