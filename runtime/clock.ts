/** Where time comes from. Timers are given back to `clearTimeout`; a delay is in milliseconds. */
export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number
  setTimeout(callback: () => void, delayMs: number): unknown
  clearTimeout(timer: unknown): void
}

/** The machine's own time: the default. */
export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout: (callback, delayMs) => setTimeout(callback, delayMs),
  clearTimeout: timer => clearTimeout(timer as ReturnType<typeof setTimeout>)
}

/** The time as the wire writes it: UTC with milliseconds, `2026-05-28T09:30:00.000Z` (§5.6.1). */
export function timestamp(clock: Clock): string {
  const ms = clock.now()
  if (written.ms !== ms) written = { ms, text: new Date(ms).toISOString() }
  return written.text
}

/** The last time that was written: many events happen in one millisecond. */
let written = { ms: NaN, text: '' }
