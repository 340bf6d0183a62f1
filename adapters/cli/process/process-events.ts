import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../../runtime/ports/clock.ts'
import type { Logger } from '../../../runtime/ports/logger.ts'
import { killPoint } from '../../../runtime/primitives/kill-points.ts'
import type { ServedRuntime } from '../../../runtime/runtime-options.ts'
import type { Served } from '../../serve/serve.ts'

/** The source of signals: `process`. */
interface SignalSource {
  on(signal: 'SIGINT' | 'SIGTERM', listener: () => void): unknown
}

/** The exit codes of a process that stops at once: 128 + the number of the signal. */
const AT_ONCE = { SIGINT: 130, SIGTERM: 143 } as const

/**
 * npm forwards a signal that the terminal or a supervisor has already sent to this process. Within this time both count
 * as one.
 */
const SAME_SIGNAL_MS = 500

/** Aborts at the first SIGINT or SIGTERM. The second calls `exit` with its code. */
export function stopSignal(source: SignalSource, now: () => number, exit: (code: number) => void): AbortSignal {
  const stop = new AbortController()
  const receivedAtMs = new Map<string, number>()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    source.on(signal, () => {
      const isSame = now() - (receivedAtMs.get(signal) ?? -Infinity) <= SAME_SIGNAL_MS
      const isFirst = receivedAtMs.size === 0
      if (!isSame) receivedAtMs.set(signal, now())
      if (isFirst) stop.abort()
      else if (!isSame) exit(AT_ONCE[signal])
    })
  }
  return stop.signal
}

/** Resolves when a signal aborts, or at once if it has aborted. */
export function whenAborted(signal: AbortSignal): Promise<undefined> {
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

/**
 * Logs unhandled rejections of an author's code, so that they do not end the process. Returns the function that undoes
 * it.
 */
export function surviveRejections(source: RejectionSource, logger: Logger): () => void {
  const listener = (error: unknown) =>
    logger.error('the agent has a promise that rejects and is not awaited', { error })
  source.on('unhandledRejection', listener)
  return () => void source.off('unhandledRejection', listener)
}

/** The time limit for commits in progress, before clients are notified. */
const SETTLE_MS = 500

/** The time limit for parking as a whole. */
const PARK_MS = 9_000

interface Parked {
  readonly served: Served
  readonly runtime: ServedRuntime
  readonly clock: Clock
  readonly logger: Logger
  /** Runs last: flushes telemetry. Does not reject. */
  readonly flush?: (() => Promise<void>) | undefined
}

/**
 * Parks the work of a served agent. It refuses new connections, and stores and delivers pending events. Within a second
 * it notifies the clients that the server restarts. Work is stopped; with a persistent store it continues when that is
 * opened again. Work whose task has ended may finish its cleanup. Resolves within 9 seconds, even if the author's code
 * or the store blocks.
 */
export async function park({ served, runtime, clock, logger, flush }: Parked): Promise<void> {
  killPoint('parking')
  logger.info?.('the server is stopping and parks its work', {})
  served.drain()
  await within(clock, SETTLE_MS, runtime.settled())
  // Lets the answers to the last commits be written.
  await setImmediate()
  // The server closes first, so that clients receive the restart, not the ends of calls and streams by a closing
  // runtime.
  const closed = [served.close(), runtime.close()].map(closing =>
    closing.catch((error: unknown) => logger.error('not everything could be closed', { error }))
  )
  if (await within(clock, PARK_MS - SETTLE_MS, Promise.all(closed).then(flush))) return
  logger.warn('not everything has stopped in time', { afterMs: PARK_MS })
}

/** Waits at most `ms` for a promise. Answers whether it settled in time. */
export async function within(clock: Clock, ms: number, awaited: Promise<unknown>): Promise<boolean> {
  let timer: unknown
  const late = new Promise<boolean>(resolve => (timer = clock.setTimeout(() => resolve(false), ms)))
  const isInTime = await Promise.race([awaited.then(() => true), late])
  clock.clearTimeout(timer)
  return isInTime
}
