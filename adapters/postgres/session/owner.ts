import type { Logger } from '../../../runtime/ports/logger.ts'
import { jitter } from '../../../runtime/primitives/event-loop.ts'
import { inUse, StorageError, type Holder } from '../../rows/damage.ts'
import { checkFinished, LOCK_CLASS, migratePostgres, POSTGRES_MIGRATIONS } from '../schema/migrate.ts'
import type { PostgresPool } from './pool.ts'
import { checkedDatabase } from './server-checks.ts'
import { type PostgresCell, overloadedError, postgresReasonOf, Session } from './session.ts'

/** The first and the longest delay between two attempts to own the database again, in milliseconds. */
const FIRST_MS = 100
const LONGEST_MS = 5000

/** The start of a session in `pg_stat_activity`, as text that does not depend on a setting. */
const STARTED_AT = 'extract(epoch FROM backend_start)::text'

/** The options of an owner. */
export interface OwnerOptions {
  readonly pool: PostgresPool
  /** The database's name for messages, without credentials. */
  readonly place: string
  readonly schema: string
  /** The number of shards, for a new database. */
  readonly shards: number
  /** This process. */
  readonly holder: Holder
  readonly logger: Logger
  /** Whether an unfinished copy is accepted, to be begun again. */
  readonly isCopied?: boolean
}

/** A session as the server knows it. The start tells it from a later one with the same process id. */
interface Backend {
  readonly pid: string
  readonly startedAt: string
}

/** Shards of a database, with the epochs since which this process owns them. */
export interface Ownership {
  /** The session that has the locks of the shards, and writes. */
  readonly session: Session
  /** The number of all shards of the database. */
  readonly count: number
  /** The two parameters of `check_owner`. */
  readonly shards: readonly number[]
  readonly epochs: readonly number[]
}

/** The owner of shards, for the writer. */
export interface ShardOwner {
  readonly isOwner: boolean
  /**
   * The shards that this process owns now; another object after each change. Throws Overloaded while the database is
   * away.
   */
  readonly owned: Ownership
  /** Gives up a lost ownership. Later reports about the same session change nothing. */
  lost(session: Session, error: unknown): void
  /** Gives all shards up. May be called twice. */
  close(): Promise<void>
}

/**
 * Owns all shards of a database: one session has their advisory locks, and writes. PostgreSQL takes the locks away when
 * the session ends, after its last transaction. Then this process owns nothing, and tries again, with back-off, until
 * it is closed.
 */
export class DatabaseOwner implements ShardOwner {
  readonly #options: OwnerOptions
  #owned: Ownership | undefined
  /** The last session that owned the database. */
  #backend: Backend | undefined
  #timer: NodeJS.Timeout | undefined
  #attempt: Promise<void> | undefined
  /** The refusal that was logged since the database went away. */
  #loggedRefusal: string | undefined
  readonly #spread = jitter(1)

  constructor(options: OwnerOptions) {
    this.#options = options
  }

  /** Opens the first session. Rejects with StorageError for a database that cannot be used, or is in use. */
  async open(): Promise<void> {
    const { place } = this.#options
    try {
      this.#owned = await this.#own(true)
    } catch (error) {
      throw error instanceof StorageError
        ? error
        : new StorageError(`${place} cannot be used: ${postgresReasonOf(error)}.`, { cause: error })
    }
  }

  get isOwner(): boolean {
    return this.#owned !== undefined
  }

  /** The shards that this process owns now. Throws Overloaded while the database is away. */
  get owned(): Ownership {
    if (!this.#owned) throw overloadedError()
    return this.#owned
  }

  /** Gives up a lost ownership, and begins to try again. Later reports about the same session change nothing. */
  lost(session: Session, error: unknown): void {
    session.close()
    if (this.#owned?.session !== session) return
    this.#owned = undefined
    const { logger, place } = this.#options
    logger.warn('the database is away: calls are refused until it is back', {
      database: place,
      reason: postgresReasonOf(error)
    })
    this.#retryIn(FIRST_MS, Date.now())
  }

  /** Gives all shards up. May be called twice. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#attempt
    clearTimeout(this.#timer)
    const session = this.#owned?.session
    // The server notices the end of a connection later than its client, and the next owner may be waiting.
    await Promise.allSettled([session?.once('SELECT pg_advisory_unlock_all()')])
    session?.close()
  }

  #retryIn(delayMs: number, sinceMs: number): void {
    this.#timer = setTimeout(() => {
      this.#attempt = this.#tryAgain(delayMs, sinceMs)
    }, delayMs * this.#spread())
    this.#timer.unref()
  }

  async #tryAgain(delayMs: number, sinceMs: number): Promise<void> {
    const { logger, place } = this.#options
    try {
      this.#owned = await this.#own(false)
      this.#loggedRefusal = undefined
      logger.warn('the database is back', { database: place, awayMs: Date.now() - sinceMs })
    } catch (error) {
      // Another process has it, or it is a standby now: logged once.
      if (error instanceof StorageError && error.message !== this.#loggedRefusal)
        logger.warn((this.#loggedRefusal = error.message), { database: place })
      this.#retryIn(Math.min(2 * delayMs, LONGEST_MS), sinceMs)
    }
  }

  async #own(isFirst: boolean): Promise<Ownership> {
    const { pool, place, schema, logger } = this.#options
    const session = await Session.open(pool, schema)
    try {
      const found = await checkedDatabase(session, this.#options, isFirst ? logger : undefined)
      if (!this.#options.isCopied) checkFinished(place, found)
      await this.#lock(session)
      if (found.version < POSTGRES_MIGRATIONS.length) await migratePostgres(session, found.version)
      const rows = await session.once('UPDATE shards SET epoch = epoch + 1, holder = $1 RETURNING shard, epoch', [
        JSON.stringify(this.#options.holder)
      ])
      const [[pid, startedAt]] = (await session.once(
        `SELECT pid, ${STARTED_AT} FROM pg_stat_activity WHERE pid = pg_backend_pid()`
      )) as [[string, string]]
      this.#backend = { pid, startedAt }
      session.ended = error => this.lost(session, error)
      return {
        session,
        count: rows.length,
        shards: rows.map(([shard]) => Number(shard)),
        epochs: rows.map(([, epoch]) => Number(epoch))
      }
    } catch (error) {
      session.close()
      throw error
    }
  }

  /**
   * Takes the lock of every shard. The last session of this process is ended if it is still there: its connection may
   * be dead.
   */
  async #lock(session: Session): Promise<void> {
    for (;;) {
      const occupied = await lockAll(session)
      if (!occupied) return
      await session.once('SELECT pg_advisory_unlock_all()')
      if (await this.#endLast(session)) continue
      // Another process that has just got the locks writes its name after that.
      const holder =
        occupied[1] && occupied[1] !== JSON.stringify(this.#options.holder)
          ? (JSON.parse(occupied[1]) as Holder)
          : undefined
      throw inUse(this.#options.place, holder, 'Stop that one, or use another database or schema.')
    }
  }

  /** Ends the last session that owned the database; gives `false` if there is none on the server. */
  async #endLast(session: Session): Promise<boolean> {
    if (!this.#backend) return false
    const { pid, startedAt } = this.#backend
    const ended = await session.once(
      `SELECT pg_terminate_backend(pid, 100) FROM pg_stat_activity WHERE pid = $1 AND ${STARTED_AT} = $2`,
      [pid, startedAt]
    )
    return ended.length > 0
  }
}

/**
 * Takes the lock of every shard, or gives the result for one that another session has. Of sessions that try at once,
 * the one that gets the first shard gets all.
 */
async function lockAll(session: Session): Promise<PostgresCell[] | undefined> {
  for (const part of ['shard = 0', 'shard > 0']) {
    const locks = await session.once(
      `SELECT pg_try_advisory_lock(${LOCK_CLASS}, shard), holder FROM shards WHERE ${part} ORDER BY shard`
    )
    const occupied = locks.find(([isLocked]) => isLocked !== 't')
    if (occupied) return occupied
  }
  return undefined
}
