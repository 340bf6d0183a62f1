import type { Clock } from '../../runtime/ports/clock.ts'
import { consoleLogger, type Logger } from '../../runtime/ports/logger.ts'
import { isLoopback } from '../entry/admission.ts'
import { SHARDS } from '../postgres/schema/migrate.ts'
import type { PostgresPool } from '../postgres/session/pool.ts'
import { connectionsOf, storeOf } from '../postgres/store.ts'
import { ClusterNode } from './node.ts'
import { PostgresPlacement, steadyClock } from './placement/postgres-placement.ts'

/** The connections of a node beside those for reads: two that stay, and one more for a moment at the start. */
const OTHER_CONNECTIONS = 3

/** The fewest characters of a secret. */
export const SECRET_LENGTH = 16

/** The options of a node. */
export interface PostgresNodeOptions {
  /** Where the other nodes reach this one: `ws://10.0.0.7:4243`. Each node has its own. */
  readonly address: string
  /** Where it listens for them. Default: host and port of `address`. */
  readonly listen?: { readonly host: string; readonly port: number }
  /**
   * A text that all nodes know, by which they recognise each other, of at least 16 characters. It is never sent.
   * Default on a loopback address: one that the first node makes and stores in the database.
   */
  readonly secret?: string | undefined
  /** The schema of the tables, created if needed. Default `taskchart`. */
  readonly schema?: string
  /** Connections for reads. Default 4. */
  readonly readers?: number
  /** The number of shards of a new database, from 1 to 4096. It cannot be changed later. Default 48. */
  readonly shards?: number
  /** Whether the node takes shards. One without forwards every change. Default true. */
  readonly takesShards?: boolean
  readonly logger?: Logger
  /**
   * Of this process; its time need not be that of other nodes, but nobody may set it while it runs. Default: one that
   * goes on when the machine's clock is set.
   */
  readonly clock?: Clock
}

/**
 * One node of a cluster whose store is a PostgreSQL database. Give it to `createNode({ cluster: node, store:
 * node.store })`, then call `node.open()`. Rejects with StorageError for a database that cannot be used.
 */
export async function postgresNode(place: string | PostgresPool, options: PostgresNodeOptions): Promise<ClusterNode> {
  const {
    address,
    listen,
    secret,
    schema = 'taskchart',
    readers = 4,
    shards = SHARDS,
    takesShards = true,
    logger = consoleLogger,
    clock = steadyClock
  } = options
  if ((secret?.length ?? 0) < SECRET_LENGTH && !(secret === undefined && isLoopback(new URL(address).hostname)))
    throw new TypeError(
      `postgresNode needs a secret of at least ${SECRET_LENGTH} characters. Only for a loopback address it may be left out.`
    )
  const connections = connectionsOf(place, readers, 'postgresNode', OTHER_CONNECTIONS)
  const { pool, name, end } = connections
  try {
    const placement = await PostgresPlacement.open({
      pool,
      place: name,
      schema,
      shards,
      takesShards,
      secret,
      logger,
      clock
    })
    return new ClusterNode({
      placement,
      store: storeOf(placement, connections, schema, logger),
      address,
      ...(listen && { listen }),
      secret: placement.secret,
      logger,
      clock: placement.time
    })
  } catch (error) {
    await end()
    throw error
  }
}
