import { isA2AError } from '../../machines/protocol/errors.ts'
import type { Logger } from '../../runtime/ports/logger.ts'
import type { Store } from '../../runtime/store/store.ts'
import { rowsOf } from '../rows/commit-rows.ts'
import { reportOnce } from '../rows/damage.ts'
import { definitionsIn } from '../rows/definition-rows.ts'
import { readsBy, quotaUserOf, type StoreReads } from '../rows/store-reader.ts'
import { ReadQueue } from './read/read-queue.ts'
import { PostgresReads } from './read/reads.ts'
import type { ShardOwner } from './session/owner.ts'
import { isPool, placeName, poolOf, type PostgresPool } from './session/pool.ts'
import { type OrderedChange, Sweeper, Writer } from './write/writer.ts'

/**
 * The connections that a store needs beside those for reads: one that writes, and one more for a moment at the start.
 */
const OTHER_CONNECTIONS = 2

/** The connections of a store or a reader. */
export interface PostgresConnections {
  readonly pool: PostgresPool
  /** The database's name for messages, without credentials. */
  readonly name: string
  /** Connections for reads. */
  readonly sessions: number
  readonly end: () => Promise<void>
}

/** The connections to a database: `readers` for reads, and `others`. */
export function connectionsOf(
  place: string | PostgresPool,
  readers: number,
  taker: string,
  others = OTHER_CONNECTIONS
): PostgresConnections {
  const name = placeName(place, taker)
  if (!isPool(place)) {
    const pool = poolOf(place, readers + others)
    return { pool, name, sessions: readers, end: () => pool.end() }
  }
  const most = place.options?.max ?? 10
  if (most <= others)
    throw new TypeError(
      `${taker} needs a pool of at least ${others + 1} connections: new Pool({ max: ${others + readers} }).`
    )
  return { pool: place, name, sessions: Math.min(readers, most - others), end: async () => {} }
}

/** The store in a database for the owner of its shards, or of some. */
export function storeOf(
  owner: ShardOwner,
  { pool, name, sessions, end }: PostgresConnections,
  schema: string,
  logger: Logger
): Store {
  const writer = new Writer(owner, name)
  const queue = new ReadQueue({ pool, schema, place: name, sessions })
  const sweeper = new Sweeper(owner, queue, writer)
  let closed: Promise<void> | undefined
  const checkOpen = () => {
    if (closed) throw new TypeError('The store is closed.')
  }
  const change = (what: OrderedChange) => {
    checkOpen()
    return writer.change(what)
  }
  const close = async () => {
    await writer.idle()
    await queue.close()
    await owner.close()
    await end()
  }
  const reads = readsOf(queue, reportOnce(logger, { database: name }), () => {
    checkOpen()
    void owner.owned
  })
  const commit: Store['commit'] = async commit => {
    checkOpen()
    return writer.commit(rowsOf(commit))
  }
  return {
    ...reads,
    commit,
    ...definitionsIn({ ...reads, commit }),
    writeWebhook: async (scope, write, limit) => (await change({ webhooks: { write, scope, limit } })) as 'written',
    noteWebhooks: async notes => (await change({ webhooks: { notes } })) as boolean[],
    deleteWebhook: async (scope, taskId, id) => (await change({ webhooks: { delete: id, scope, taskId } })) as boolean,
    sweep: async (due, limit) => {
      checkOpen()
      return sweeper.sweep(due, limit)
    },
    erase: async whose => (await change({ erase: whose })) as boolean,
    countTransitions: async (counts, atMs) => void (await change({ counts, atMs })),
    status: () => ({
      isStopped: closed !== undefined || !owner.isOwner,
      waitingReads: queue.size,
      waitingWrites: writer.waiting
    }),
    close: () => (closed ??= close())
  }
}

/**
 * The reads of the port: each waits for a session, scheduled fairly among callers. `check` throws if reads are refused
 * now.
 */
export function readsOf(queue: ReadQueue, report: (message: string) => void, check = () => {}): StoreReads {
  return readsBy(async (name, args) => {
    check()
    return queue.read(quotaUserOf(args[0]), async session => {
      const reads = new PostgresReads(session, ({ message }) => report(message))
      try {
        return await (reads[name] as (...args: readonly unknown[]) => Promise<unknown>).apply(reads, [...args])
      } catch (error) {
        if (isA2AError(error) && error.code === 'InternalError') report(error.message)
        throw error
      }
    })
  })
}
