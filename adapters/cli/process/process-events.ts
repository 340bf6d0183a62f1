import type { Logger } from '../../../runtime/ports/logger.ts'

/** The source of signals: `process`. */
interface SignalSource {
  on(signal: 'SIGINT' | 'SIGTERM', listener: () => void): unknown
}

/** The exit codes of a process that stops at once: 128 + the number of the signal. */
const AT_ONCE = { SIGINT: 130, SIGTERM: 143 } as const

/** npm forwards a signal that the terminal or a supervisor has already sent to this process. Within this time both count as one. */
const SAME_SIGNAL_MS = 500

/** Aborts at the first SIGINT or SIGTERM. The second calls `exit` with its code. */
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

/** Resolves when a signal aborts, or at once if it has aborted. */
export function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise(resolve => {
    if (signal.aborted) resolve(undefined)
    else signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
}

/** The source of unhandled rejections: `process`. */
interface RejectionSource {
  on(event: 'unhandledRejection', listener: (error: unknown) => void): unknown
  off(event: 'unhandledRejection', listener: (error: unknown) => void): unknown
}

/** Logs unhandled rejections of an author's code, so that they do not end the process. Returns the function that undoes it. */
export function surviveRejections(source: RejectionSource, logger: Logger): () => void {
  const listener = (error: unknown) =>
    logger.error('the agent has a promise that rejects and is not awaited', { error })
  source.on('unhandledRejection', listener)
  return () => void source.off('unhandledRejection', listener)
}
