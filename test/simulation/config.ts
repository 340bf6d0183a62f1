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
  /** Several nodes that share the disk; without it one process. */
  readonly cluster?: ClusterConfig
}

/** What the nodes of a world are like. */
export interface ClusterConfig {
  readonly nodes: number
  readonly shards: number
  /** How much the clock of each node is ahead, and how much faster it goes; a node beyond the list has the first. */
  readonly aheadMs: readonly number[]
  readonly rates: readonly number[]
  readonly databaseAheadMs: number
  /** How often a node is taken for one that reads slowly. */
  readonly slowLinks: number
}
