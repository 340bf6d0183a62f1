import { checkNames } from './known-names.ts'

/** How long a runtime keeps what is over, and how often it looks. All are in milliseconds by the runtime's clock. */
export interface Retention {
  /** How long a task is kept after its end, with its events and messages; Infinity for ever. Default 30 days. */
  endedTasksMs: number
  /** How long a context without tasks is kept after the last thing that happened in it; Infinity for ever. Default 30 days. */
  idleContextsMs: number
  /** How often what is old is removed: at most every 2,147,483,647 ms, which are 24 days. Default 1 minute. */
  sweepEveryMs: number
}

const DAY_MS = 24 * 60 * 60 * 1000

/** The longest delay of a timer. */
const LONGEST_MS = 2 ** 31 - 1

/** The defaults of {@link Retention}. */
export const defaultRetention: Retention = { endedTasksMs: 30 * DAY_MS, idleContextsMs: 30 * DAY_MS, sweepEveryMs: 60_000 }

/** The defaults with these in their place. Throws RangeError for one that is no such time. */
export function retentionWith(changes: Partial<Retention> = {}): Retention {
  checkNames(changes, Object.keys(defaultRetention), 'retention')
  const retention = { ...defaultRetention, ...changes }
  for (const [name, ms] of Object.entries(retention)) {
    if (!(typeof ms === 'number' && ms > 0)) throw notATime(name, ms, 'a number of milliseconds above 0, or Infinity')
  }
  const { sweepEveryMs } = retention
  if (sweepEveryMs > LONGEST_MS) throw notATime('sweepEveryMs', sweepEveryMs, `at most ${LONGEST_MS}`)
  return retention
}

function notATime(name: string, ms: unknown, wanted: string): RangeError {
  return new RangeError(`retention.${name} has to be ${wanted}, not ${String(ms)}. Leave it out for the default.`)
}
