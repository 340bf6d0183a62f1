import type { PostgresPlacement } from '../../../adapters/cluster/placement/postgres-placement.ts'
import type { PostgresPool, PostgresQuery } from '../../../adapters/postgres/session/pool.ts'
import { isLost, Session, toStoreError, classifyPostgresError } from '../../../adapters/postgres/session/session.ts'
import { shardOf } from '../../../adapters/postgres/write/row-shapes.ts'
import type { Commit, Store } from '../../../runtime/store/store.ts'
import type { Disk } from '../disk.ts'
import type { Violations } from '../violations.ts'
import type { Backend, Database } from './database.ts'

const COMMIT = 'commit'
const WRITE = 'write'
const READ = 'read'

const READS = [
  'loadContext',
  'readSnapshot',
  'readWakes',
  'readTask',
  'readEvents',
  'readTaskMessages',
  'readJournal',
  'readMessages',
  'measureTasks',
  'listTasks',
  'readSend',
  'countOpen',
  'countStates',
  'readWebhooks',
  'readOpenWebhooks'
] as const
const WRITES = ['writeWebhook', 'noteWebhooks', 'deleteWebhook', 'sweep', 'erase'] as const

type Method = (...args: readonly unknown[]) => Promise<unknown>

/**
 * The store of the database as one node has it, by statements on its sessions: commits on the session with the locks,
 * under the epoch of their shard.
 */
export function nodeStore(placement: PostgresPlacement, pool: PostgresPool): Store {
  const idle: Session[] = []
  const reading = new Set<Promise<unknown>>()
  let isClosed = false
  const written = async (text: string, values: (owned: PostgresPlacement['owned']) => readonly unknown[]) => {
    const { owned } = placement
    try {
      const [[value] = []] = await owned.session.once(text, values(owned))
      return value as unknown
    } catch (error) {
      if (isLost(error)) placement.lost(owned.session, error)
      throw toStoreError(error, 'the database')
    }
  }
  const read = async (name: string, args: readonly unknown[], isAgain = false): Promise<unknown> => {
    void placement.owned
    let session: Session | undefined
    try {
      session = idle.pop() ?? (await Session.open(pool, 'simulated'))
      const [[value] = []] = await session.once(READ, [name, args])
      if (isClosed) session.close()
      else idle.push(session)
      return value
    } catch (error) {
      session?.close()
      if (isAgain || classifyPostgresError(error) !== 'away') throw toStoreError(error, 'the database')
      return read(name, args, true)
    }
  }
  const commit = async (commit: Commit) =>
    (await written(COMMIT, ({ shards, epochs }) => {
      const shard = shardOf(commit.key, placement.shards)
      return [commit, shard, epochs[shards.indexOf(shard)] ?? -1]
    })) as boolean
  const readToEnd = (name: string, args: readonly unknown[]) => {
    const answer = read(name, args)
    const ended = answer.catch(() => undefined).finally(() => reading.delete(ended))
    reading.add(ended)
    return answer
  }
  const close = async () => {
    isClosed = true
    while (reading.size > 0) await Promise.all(reading)
    for (const session of idle.splice(0)) session.close()
    await placement.close()
  }
  return {
    commit,
    close,
    ...Object.fromEntries(READS.map(name => [name, (...args: readonly unknown[]) => readToEnd(name, args)])),
    ...Object.fromEntries(
      WRITES.map(name => [name, (...args: readonly unknown[]) => written(WRITE, () => [name, args])])
    )
  } as unknown as Store
}

/** What the database does with statements about data. `killed` hears that the node dies at this very moment. */
export function dataOf(
  database: Database,
  disk: Disk,
  violations: Violations,
  killed: () => void
): (backend: Backend, query: PostgresQuery) => Promise<unknown> | undefined {
  const engine = disk.engine as unknown as Readonly<Record<string, Method>>
  return (backend, { text, values = [] }) => {
    if (text === COMMIT) return committed(values as unknown as [Commit, number, number], backend)
    const [name, args] = values as [string, readonly unknown[]]
    if (text === READ) return disk.read(async () => [[await engine[name]?.(...args)]])
    return text === WRITE ? engine[name]?.(...args).then(value => [[value]]) : undefined
  }

  async function committed(
    [commit, shard, epoch]: readonly [Commit, number, number],
    backend: Backend
  ): Promise<unknown> {
    database.checkOwner(shard, epoch)
    const owner = database.ownership(shard)
    const isWritten = await disk.commit(commit, killed, () => {
      // The lock may be gone while nobody else has it.
      if ((owner.backend ?? backend) !== backend || owner.epoch !== epoch)
        violations.add(
          `I18: ${backend.node} writes to shard ${shard} in epoch ${epoch}, and ${owner.backend?.node} owns it in epoch ${owner.epoch}`
        )
    })
    return [[isWritten]]
  }
}
