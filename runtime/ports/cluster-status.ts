/** A node of a cluster. */
export interface NodeStatus {
  /** Where the other nodes reach it. */
  readonly address: string
  /**
   * `silent`: its session is there, but it gave no sign of life while the database was read. `gone`: its session has
   * ended.
   */
  readonly state: 'alive' | 'silent' | 'gone'
  /** Whether it takes shards: not while it stops. */
  readonly takesShards: boolean
  /** The version of its agent, if it is known. */
  readonly agent?: string
  /** Its process, and when it joined: an ISO time. */
  readonly process: { readonly pid: number; readonly host: string; readonly since: string }
}

/** The time in which a node owned a shard: until the next one began. */
export interface Tenure {
  readonly epoch: number
  /** The address of the node; `undefined` for a server that was no node. */
  readonly owner: string | undefined
  /** Milliseconds since 1970, by the clock of the node. */
  readonly sinceMs: number
}

/** A shard. */
export interface ShardStatus {
  readonly shard: number
  /** How often it got a new owner. */
  readonly epoch: number
  /** The address of its node; `undefined` while it has none. */
  readonly owner: string | undefined
  /** Its newest owners, oldest first. */
  readonly tenures: readonly Tenure[]
}

/** The nodes and shards of a cluster, sorted. */
export interface ClusterStatus {
  readonly nodes: readonly NodeStatus[]
  readonly shards: readonly ShardStatus[]
}

/** The cluster of an observed node. */
export interface ObservedCluster {
  /** The address of the node. */
  readonly address: string
  /** Reads all nodes, and the owners of all shards. Rejects while they cannot be read. */
  status(): Promise<ClusterStatus>
  /** The shard of a context. */
  shardOf(key: { readonly tenant: string; readonly principal: string; readonly contextId: string }): number
}
