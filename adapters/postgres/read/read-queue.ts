import { LeastCostQueue } from '../../rows/least-cost-queue.ts'
import type { PostgresPool } from '../session/pool.ts'
import { Session, toStoreError, classifyPostgresError } from '../session/session.ts'

/** A read on one session. */
export type Read<T> = (session: Session) => Promise<T>

/** The minimum cost of a read, in milliseconds. */
const READ_MS = 0.1

/** How far behind the others a user's first read is at most, in milliseconds. */
const MOST_BEHIND_MS = 100

interface Waiting {
  readonly run: (session: Session) => Promise<void>
  readonly fail: (error: unknown) => void
}

/**
 * The sessions for reads, and the reads that wait for one. Reads are scheduled fairly among users by the time that
 * theirs took. A session is opened when a read needs it. A read whose connection is lost is repeated once, on a new
 * one.
 */
export class ReadQueue {
  readonly #pool: PostgresPool
  readonly #schema: string
  readonly #place: string
  readonly #waiting = new LeastCostQueue<Waiting>(MOST_BEHIND_MS)
  readonly #idle: Session[] = []
  readonly #busy = new Set<Promise<void>>()
  readonly #most: number
  #isClosed = false

  constructor({
    pool,
    schema,
    place,
    sessions
  }: {
    readonly pool: PostgresPool
    readonly schema: string
    readonly place: string
    readonly sessions: number
  }) {
    this.#pool = pool
    this.#schema = schema
    this.#place = place
    this.#most = sessions
  }

  /** Reads that have not been answered. */
  get size(): number {
    return this.#waiting.size + this.#busy.size
  }

  /** Runs a read for a user. Rejects with A2AError or StorageError. */
  read<T>(user: string, read: Read<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw new TypeError('The store is closed.')
      const run = async (session: Session) => {
        try {
          resolve(await read(session))
        } catch (error) {
          if (classifyPostgresError(error) !== 'away') return reject(toStoreError(error, this.#place))
          session.close()
          await this.#again(read).then(resolve, again => reject(toStoreError(again, this.#place)))
        }
      }
      this.#waiting.add(user, { run, fail: error => reject(toStoreError(error, this.#place)) })
      this.#start()
    })
  }

  /** Lets the reads end, and closes their sessions. May be called twice. */
  async close(): Promise<void> {
    this.#isClosed = true
    while (this.#busy.size > 0) await Promise.all(this.#busy)
    for (const session of this.#idle.splice(0)) session.close()
  }

  #start(): void {
    while (this.#busy.size < this.#most && this.#waiting.size > 0) {
      const serving = this.#serve().finally(() => {
        this.#busy.delete(serving)
        this.#start()
      })
      this.#busy.add(serving)
    }
  }

  /** Answers reads with one session for as long as there are any. */
  async #serve(): Promise<void> {
    let session = this.#takeIdle()
    for (let user = this.#waiting.next(); user !== undefined; user = this.#waiting.next()) {
      const waiting = this.#waiting.take(user) as Waiting
      const beganMs = performance.now()
      try {
        if (!session?.isOpen) session = await Session.open(this.#pool, this.#schema)
        await waiting.run(session)
      } catch (error) {
        waiting.fail(error)
      }
      this.#waiting.charge(user, performance.now() - beganMs + READ_MS)
    }
    if (session?.isOpen) this.#idle.push(session)
  }

  #takeIdle(): Session | undefined {
    for (let session = this.#idle.pop(); session; session = this.#idle.pop()) if (session.isOpen) return session
    return undefined
  }

  async #again<T>(read: Read<T>): Promise<T> {
    const session = await Session.open(this.#pool, this.#schema)
    try {
      return await read(session)
    } finally {
      session.close()
    }
  }
}
