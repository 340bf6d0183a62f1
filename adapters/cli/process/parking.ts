import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../../runtime/ports/clock.ts'
import type { Logger } from '../../../runtime/ports/logger.ts'
import { killPoint } from '../../../runtime/primitives/kill-points.ts'
import type { Runtime } from '../../../runtime/runtime.ts'
import type { Served } from '../../serve/serve-websocket.ts'

/** How long commits under way may take before clients are told. */
const SETTLE_MS = 500

/** How long everything together may take. */
const PARK_MS = 9_000

/** What is parked, and with what. */
interface Parked {
  readonly served: Served
  readonly runtime: Runtime
  readonly clock: Clock
  readonly logger: Logger
  /** Comes last: has what is known of it leave the process. Does not reject. */
  readonly flush?: (() => Promise<void>) | undefined
}

/**
 * Parks the work of an agent that is served. New connections are refused; what is decided is committed and told; clients
 * hear within a second that the server restarts; works get no more turns, and go on when a store that lasts is opened again;
 * those whose tasks have ended may clean up. Resolves within 9 seconds, whatever code of the author's or a store does then.
 */
export async function park({ served, runtime, clock, logger, flush }: Parked): Promise<void> {
  killPoint('parking')
  logger.info?.('the agent stops: its work is parked', {})
  served.drain()
  await within(clock, SETTLE_MS, runtime.settled())
  // What was committed last is being answered.
  await setImmediate()
  // The clients are told first: what a runtime that closes does to their calls and streams is not for them.
  const closed = [served.close(), runtime.close()].map(closing => closing.catch((error: unknown) => logger.error('not everything could be closed', { error })))
  if (await within(clock, PARK_MS - SETTLE_MS, Promise.all(closed).then(flush))) return
  logger.warn('not everything has stopped in time, and is left as it is', { afterMs: PARK_MS })
}

/** Waits for something, for so long at the most. Answers whether it came in time. */
export async function within(clock: Clock, ms: number, awaited: Promise<unknown>): Promise<boolean> {
  let timer: unknown
  const late = new Promise<boolean>(resolve => (timer = clock.setTimeout(() => resolve(false), ms)))
  const isInTime = await Promise.race([awaited.then(() => true), late])
  clock.clearTimeout(timer)
  return isInTime
}
