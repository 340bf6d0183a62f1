import { type Clock, systemClock } from '../../../runtime/ports/clock.ts'
import type { ClusterStatus } from '../../../runtime/ports/cluster-status.ts'
import type { Logger } from '../../../runtime/ports/logger.ts'
import { POSTGRES_MIGRATIONS } from '../../postgres/schema/migrate.ts'
import type { Ownership, ShardOwner } from '../../postgres/session/owner.ts'
import type { PostgresPool } from '../../postgres/session/pool.ts'
import { checkedDatabase, checkServer } from '../../postgres/session/server-checks.ts'
import { overloadedError, postgresReasonOf, Session } from '../../postgres/session/session.ts'
import { StorageError, thisHolder } from '../../rows/damage.ts'
import { readStatus } from '../status.ts'
import { joinCluster, JoinPauses, JoinRefused, SignsOfLife, storedSecret, OwnerSelection } from './joining.ts'
import type { Placement, Seat } from './placement.ts'
import {
  BEAT,
  END,
  FORMATS,
  formatText,
  GIVE,
  isSame,
  NOW,
  openWatch,
  readLocks,
  parseFormat,
  TAKE
} from './statements.ts'

/** The pause between two reads of the database, and while a shard has no owner. */
const LOOK_MS = 100
const SOON_MS = 25

/** A node without a sign of life for so long loses its shards. */
const LEASE_MS = 2000

/** A node that has just joined waits so long before it takes shards, so that nodes that join together share them. */
const SETTLE_MS = 300

/** For so long after a change, the formats of shards are read. */
const RECENT_MS = 1000

interface PostgresPlacementOptions {
  readonly pool: PostgresPool
  /** The database's name for messages, without credentials. */
  readonly place: string
  readonly schema: string
  /** The number of shards of a new database. */
  readonly shards: number
  /** Whether the node takes shards. */
  readonly takesShards: boolean
  /** Default: one in the database, made by the first node. */
  readonly secret?: string | undefined
  readonly logger: Logger
  readonly clock: Clock
}

/** A node in the last read of the database. */
interface SeenNode {
  readonly address: string
  readonly takes: boolean
  readonly pid: number
  readonly format: number
}

/**
 * Placement by the advisory locks of PostgreSQL: one session of each node has those of its shards, and writes.
 * PostgreSQL takes them away when the session ends, after its last transaction. A hung node keeps its session, so the
 * other nodes end that after the lease. A second session gives signs of life and searches for free shards.
 */
export class PostgresPlacement implements Placement, ShardOwner {
  readonly shards: number
  /** The time of the database. */
  readonly time: SharedClock
  /** The secret of the cluster: that of the options, or the one in the database. */
  readonly secret: string
  refused = 0
  readonly #options: PostgresPlacementOptions
  readonly #pauses = new JoinPauses()
  /** The pause before the node tries to join again. */
  #holdMs = 0
  #seat: Seat | undefined
  #owned: Ownership | undefined
  #pid = 0
  #watch: Session | undefined
  /** The owners of shards; undefined for a session that is no node. */
  #owners = new Map<number, string | undefined>()
  #nodes: readonly SeenNode[] = []
  readonly #wanted = new OwnerSelection()
  /** The format of each shard's last owner. */
  #formats: readonly number[] = []
  #changedAtMs = 0
  readonly #signs = new SignsOfLife(LEASE_MS)
  #joinedAtMs = 0
  #lease: unknown
  #giving: Promise<void> | undefined
  #running: Promise<void> | undefined
  #leaving: Promise<void> | undefined
  #isLeaving = false
  /** Ends the pause of the loop. */
  #wake = () => {}
  #loggedReason: string | undefined

  private constructor(options: PostgresPlacementOptions, shards: number, time: SharedClock, secret: string) {
    this.#options = options
    this.shards = shards
    this.time = time
    this.secret = secret
  }

  /** Creates the tables if needed. Rejects with StorageError for a database that cannot be used. */
  static async open(options: PostgresPlacementOptions): Promise<PostgresPlacement> {
    const { pool, place, schema, logger } = options
    try {
      const session = await Session.open(pool, schema)
      try {
        const found = await checkedDatabase(session, options, logger)
        if (found.version < POSTGRES_MIGRATIONS.length)
          throw new StorageError(
            `${place} has the older schema version ${found.version}. Stop all nodes and migrate it first: taskchart db migrate URL`
          )
        return new PostgresPlacement(
          options,
          found.shards,
          await SharedClock.of(session, options.clock),
          options.secret ?? (await storedSecret(session))
        )
      } finally {
        session.close()
      }
    } catch (error) {
      throw error instanceof StorageError
        ? error
        : new StorageError(`${place} cannot be used: ${postgresReasonOf(error)}.`, { cause: error })
    }
  }

  get isOwner(): boolean {
    return this.#owned !== undefined
  }

  get owned(): Ownership {
    if (!this.#owned) throw overloadedError()
    return this.#owned
  }

  async status(): Promise<ClusterStatus> {
    if (!this.#watch) throw overloadedError()
    return readStatus(this.#watch)
  }

  get nodes(): readonly string[] {
    return this.#nodes.map(({ address }) => address)
  }

  ownerOf(shard: number): string | undefined {
    return this.#owners.get(shard)
  }

  join(seat: Seat): void {
    this.#seat = seat
    this.#running = this.#run(seat)
  }

  lost(session: Session, error: unknown): void {
    session.close()
    if (this.#owned?.session !== session) return
    const { shards } = this.#owned
    this.#owned = undefined
    this.#owners = new Map()
    this.#nodes = []
    const { logger, place, clock } = this.#options
    this.#holdMs = this.#pauses.lost(clock.now())
    clock.clearTimeout(this.#lease)
    if (!this.#isLeaving)
      logger.warn('the node has lost its session: other nodes take its shards', {
        database: place,
        reason: postgresReasonOf(error),
        shards: shards.length
      })
    this.#seat?.lost(shards)
    this.#seat?.changed()
    this.#wake()
  }

  leave(): Promise<void> {
    return (this.#leaving ??= this.#leave())
  }

  /** Ends the sessions. */
  async close(): Promise<void> {
    await this.leave()
  }

  async #leave(): Promise<void> {
    this.#isLeaving = true
    this.#wake()
    await this.#running
    const seat = this.#seat
    const owned = this.#owned
    if (owned && seat) {
      try {
        await owned.session.once('UPDATE nodes SET takes = false WHERE address = $1', [seat.address])
        await this.#give(seat, owned.shards)
        await owned.session.once('DELETE FROM nodes WHERE address = $1 AND pid = $2', [seat.address, this.#pid])
      } catch (error) {
        // PostgreSQL takes the shards away when the session ends.
        this.#options.logger.warn('the node could not hand its shards over', { reason: postgresReasonOf(error) })
      }
      this.#owned = undefined
      owned.session.close()
    }
    this.#options.clock.clearTimeout(this.#lease)
    this.#watch?.close()
  }

  async #run(seat: Seat): Promise<void> {
    const { logger, place } = this.#options
    while (!this.#isLeaving) {
      try {
        if (!this.#owned) await this.#enter(seat)
        await this.#updateOwnership(seat)
        this.#loggedReason = undefined
      } catch (error) {
        this.#watch?.close()
        this.#watch = undefined
        if (postgresReasonOf(error) !== this.#loggedReason)
          logger.warn('the node cannot take part in the cluster now', {
            database: place,
            reason: (this.#loggedReason = postgresReasonOf(error))
          })
        if (error instanceof JoinRefused) {
          this.refused += 1
          this.#holdMs = this.#pauses.refused()
        }
      }
      await this.#pause(this.#owners.size < this.shards ? SOON_MS : LOOK_MS)
      const holdMs = this.#holdMs
      this.#holdMs = 0
      if (holdMs > 0) await this.#pause(holdMs)
    }
    await this.#giving
  }

  /** Resolves after a time, or earlier if the loop is woken; at once if the node leaves. */
  async #pause(ms: number): Promise<void> {
    const { clock } = this.#options
    if (this.#isLeaving) return
    await new Promise<void>(resolve => {
      const timer = clock.setTimeout(resolve, ms)
      this.#wake = () => {
        clock.clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Opens the session that gets the locks. */
  async #enter({ address, version }: Seat): Promise<void> {
    const { pool, schema, place, takesShards, clock } = this.#options
    const session = await Session.open(pool, schema)
    try {
      await checkServer(session, place, schema, undefined)
      const holder = JSON.stringify({
        ...thisHolder(),
        agent: version.agent,
        version: formatText(version.format)
      })
      this.#pid = await joinCluster(session, {
        address,
        takesShards,
        holder,
        secret: this.secret,
        leaseMs: LEASE_MS,
        clock
      })
      this.#pauses.joined(clock.now())
      this.#owned = { session, count: this.shards, shards: [], epochs: [] }
      this.#joinedAtMs = this.#options.clock.now()
      session.ended = error => this.lost(session, error)
    } catch (error) {
      session.close()
      throw error
    }
    this.#renew()
  }

  /**
   * Gives a sign of life, and finds the owners of all shards. Takes the free ones that this node should have, and gives
   * those that another should have.
   */
  async #updateOwnership(seat: Seat): Promise<void> {
    const { pool, schema, clock } = this.#options
    const watch = (this.#watch ??= await openWatch(pool, schema, LEASE_MS))
    const fromMs = clock.now()
    const [beat] = await watch.rows(BEAT, [seat.address, this.#pid])
    if (!beat) return this.#loseTo(seat)
    this.time.saw(Number(beat[0]), fromMs)
    this.#renew()
    const locks = await readLocks(watch)
    const present = locks.filter(({ isNode }) => isNode)
    const late = this.#signs.lateOf(
      present.filter(({ pid }) => pid !== this.#pid),
      clock.now()
    )
    if (late.length > 0) await watch.rows(END, [late])
    const nodes = present.flatMap(({ pid, address, takes, format }) =>
      address !== undefined && !late.includes(pid) ? [{ pid, address, takes, format }] : []
    )
    const owners = new Map(locks.flatMap(({ isNode, object, address }) => (isNode ? [] : [[object, address] as const])))
    const hasChanged =
      nodes
        .map(({ address }) => address)
        .toSorted()
        .join() !== [...this.nodes].toSorted().join() || !isSame(owners, this.#owners)
    if (hasChanged) this.#changedAtMs = clock.now()
    this.#owners = owners
    this.#nodes = nodes
    // A new owner has its locks before its format can be read.
    if (owners.size < this.shards || clock.now() - this.#changedAtMs <= RECENT_MS)
      this.#formats = (await watch.rows(FORMATS)).map(([format]) => parseFormat(format))
    if (hasChanged) seat.changed()
    await this.#balance(seat)
  }

  /** Gives everything up, because the row of this node is another's now. */
  #loseTo({ address }: Seat): void {
    if (this.#owned) this.lost(this.#owned.session, new Error(`another process has joined with the address ${address}`))
  }

  async #balance(seat: Seat): Promise<void> {
    const owned = this.#owned
    const { clock } = this.#options
    const owners = this.#wanted.look(this.#nodes, this.#formats)
    if (!owned || clock.now() - this.#joinedAtMs < SETTLE_MS) return
    const free = owners.flatMap((owner, shard) => (owner === seat.address && !this.#owners.has(shard) ? [shard] : []))
    if (free.length > 0) await this.#take(seat, owned, free)
    const given = owned.shards.filter(shard => owners[shard] !== undefined && owners[shard] !== seat.address)
    if (given.length > 0)
      this.#giving ??= this.#give(seat, given)
        .catch((error: unknown) => this.lost(owned.session, error))
        .finally(() => (this.#giving = undefined))
  }

  async #take(seat: Seat, { session }: Ownership, free: readonly number[]): Promise<void> {
    const { format } = seat.version
    const holder = { ...thisHolder(), address: seat.address, version: formatText(format) }
    const rows = (await session.rows(TAKE, [free, format, JSON.stringify(holder)])).filter(
      ([, epoch]) => epoch !== null
    )
    if (this.#owned?.session !== session || rows.length === 0) return
    const epochs = new Map(rows.map(([shard, epoch]) => [Number(shard), Number(epoch)]))
    this.#owned = {
      ...this.#owned,
      shards: [...this.#owned.shards, ...epochs.keys()],
      epochs: [...this.#owned.epochs, ...epochs.values()]
    }
    for (const shard of epochs.keys()) this.#owners.set(shard, seat.address)
    this.#formats = this.#formats.map((last, shard) => (epochs.has(shard) ? format : last))
    seat.gained(epochs)
    seat.changed()
  }

  async #give(seat: Seat, given: readonly number[]): Promise<void> {
    const session = this.#owned?.session
    await seat.giving(given)
    // The session may have been lost, and the node may have joined again with another.
    if (!this.#owned || this.#owned.session !== session) return
    const { shards, epochs } = this.#owned
    const gone = new Set(shards.flatMap((shard, i) => (given.includes(shard) ? [i] : [])))
    this.#owned = {
      ...this.#owned,
      shards: shards.filter((_, i) => !gone.has(i)),
      epochs: epochs.filter((_, i) => !gone.has(i))
    }
    for (const shard of given) this.#owners.delete(shard)
    await this.#owned.session.rows(GIVE, [[...given]])
  }

  /** Without an answer of the database for the lease, this node has lost its shards: others take them. */
  #renew(): void {
    const { clock } = this.#options
    clock.clearTimeout(this.#lease)
    this.#lease = clock.setTimeout(() => {
      this.#watch?.close()
      if (this.#owned) this.lost(this.#owned.session, new Error('the database has not answered'))
    }, LEASE_MS)
  }
}

/** A clock of this process that nobody can set: it goes on when the clock of the machine is set. */
export const steadyClock: Clock = { ...systemClock, now: () => performance.timeOrigin + performance.now() }

/**
 * The time of the database, which all nodes share: the clocks of their machines need not agree. A node sees the
 * database's clock between two moments of its own, so it is wrong by the duration of a round trip at most.
 */
export class SharedClock implements Clock {
  readonly #own: Clock
  #aheadMs = 0

  constructor(own: Clock) {
    this.#own = own
  }

  /** The time of the database of a session. Rejects with the error of `pg`. */
  static async of(session: Session, own: Clock): Promise<SharedClock> {
    const clock = new SharedClock(own)
    const fromMs = own.now()
    const [[nowMs] = []] = await session.rows(NOW)
    clock.saw(Number(nowMs), fromMs)
    return clock
  }

  now(): number {
    return Math.floor(this.#own.now() + this.#aheadMs)
  }

  setTimeout(callback: () => void, delayMs: number): unknown {
    return this.#own.setTimeout(callback, delayMs)
  }

  clearTimeout(timer: unknown): void {
    this.#own.clearTimeout(timer)
  }

  /** The database's clock showed a time, in milliseconds since 1970, between `fromMs` of this process and now. */
  saw(theirMs: number, fromMs: number): void {
    this.#aheadMs = Math.min(Math.max(this.#aheadMs, theirMs - this.#own.now()), theirMs - fromMs)
  }
}
