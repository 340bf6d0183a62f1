/** What one world is like. Faults are probabilities, times are in milliseconds. */
export interface WorldConfig {
  readonly seed: number
  readonly work: 'function' | 'generator' | 'chart'
  readonly negotiates: boolean
  readonly messages: 'reject' | 'queue'
  readonly idleContexts: number
  readonly liveContexts: number
  readonly bufferedEvents: number
  /** The longest time that the store takes before, and after, it does what it is asked. */
  readonly slowStoreMs: number
  /** Commits that fail, before or after they are written. */
  readonly commitFaults: number
  /** Reads that fail. */
  readonly readFaults: number
  /** Commits at which the process is killed, before or after they are written. */
  readonly crashes: number
  readonly latencyMs: number
  /** Frames at which a connection is cut. */
  readonly cuts: number
  /** Frames at which a client stops reading for a while. */
  readonly stalls: number
}
