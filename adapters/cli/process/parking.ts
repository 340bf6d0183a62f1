import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../../runtime/ports/clock.ts'
import type { Logger } from '../../../runtime/ports/logger.ts'
import { killPoint } from '../../../runtime/primitives/kill-points.ts'
import type { Runtime } from '../../../runtime/runtime.ts'
import type { Served } from '../../serve/serve-websocket.ts'

/** The time limit for commits in progress, before clients are notified. */
const SETTLE_MS = 500

/** The time limit for parking as a whole. */
const PARK_MS = 9_000

interface Parked {
  readonly served: Served
  readonly runtime: Runtime
  readonly clock: Clock
  readonly logger: Logger
  /** Runs last: flushes telemetry. Does not reject. */
  readonly flush?: (() => Promise<void>) | undefined
}

/**
 * Parks the work of a served agent. It refuses new connections, and stores and delivers pending events. Within a second it
 * notifies the clients that the server restarts. Work is stopped; with a persistent store it continues when that is opened again.
 * Work whose task has ended may finish its cleanup. Resolves within 9 seconds, even if the author's code or the store blocks.
 */
export async function park({ served, runtime, clock, logger, flush }: Parked): Promise<void> {
  killPoint('parking')
  logger.info?.('the server is stopping and parks its work', {})
  served.drain()
  await within(clock, SETTLE_MS, runtime.settled())
  // Lets the answers to the last commits be written.
  await setImmediate()
  // The server closes first, so that clients receive the restart, not the ends of calls and streams by a closing runtime.
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
