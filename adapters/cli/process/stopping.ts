/** What tells of signals: `process`. */
export interface SignalSource {
  on(signal: 'SIGINT' | 'SIGTERM', listener: () => void): unknown
}

/** Exit codes of a process that is stopped at once, as shells number them. */
const AT_ONCE = { SIGINT: 130, SIGTERM: 143 } as const

/** npm passes a signal on that the terminal or a supervisor has sent us already; within this time both count as one. */
const SAME_SIGNAL_MS = 500

/** The signal aborts when the process is told to stop for the first time; told again it is to `exit` at once, with a code. */
export function stopSignal(source: SignalSource, now: () => number, exit: (code: number) => void): AbortSignal {
  const stop = new AbortController()
  const told = new Map<string, number>()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    source.on(signal, () => {
      const isSame = now() - (told.get(signal) ?? -Infinity) <= SAME_SIGNAL_MS
      const isFirst = told.size === 0
      if (!isSame) told.set(signal, now())
      if (isFirst) stop.abort()
      else if (!isSame) exit(AT_ONCE[signal])
    })
  }
  return stop.signal
}
