import type { PostgresClient, PostgresPool, PostgresQuery } from '../../../adapters/postgres/session/pool.ts'
import type { ClockView } from '../virtual-clock.ts'
import type { Backend, Database } from './database.ts'
import type { Machine } from './machine.ts'
import { Way } from './way.ts'

/** How long a connection attempt may take, as for the pool of the store. */
const CONNECT_MS = 5000

/** How long the client waits for an answer, as for the pool of the store. */
const ANSWER_MS = 40_000

type Answer = { readonly rows: readonly unknown[] }

/** What connections are made of. */
export interface PoolOptions {
  readonly machine: Machine
  readonly database: Database
  /** The true time. */
  readonly clock: ClockView
  readonly latencyMs: () => number
  /** Runs a statement about data, or gives `undefined` for any other. */
  readonly data: (backend: Backend, query: PostgresQuery) => Promise<unknown> | undefined
}

/** The connections of one node to the database, as `pg` gives them. */
export function poolOf(options: PoolOptions): PostgresPool {
  return { connect: () => new Promise((resolve, reject) => new Connection(options).open(resolve, reject)) }
}

class Connection implements PostgresClient {
  readonly #options: PoolOptions
  readonly #there: Way
  readonly #back: Way
  readonly #waiting = new Set<(error: Error) => void>()
  readonly #ended: ((error?: Error) => void)[] = []
  #backend: Backend | undefined
  #isClosed = false
  /** Statements run one after the other. */
  #last: Promise<void> = Promise.resolve()

  constructor(options: PoolOptions) {
    const { machine, clock, latencyMs } = options
    this.#options = options
    this.#there = new Way({ clock, gate: machine.database, latencyMs })
    this.#back = new Way({ clock: machine.arrivals, gate: machine.database, latencyMs })
  }

  open(opened: (client: PostgresClient) => void, failed: (error: Error) => void): void {
    const { machine, database } = this.#options
    const over = (error?: Error) => {
      machine.arrivals.clearTimeout(late)
      if (this.#isClosed) return
      if (!error) return opened(this)
      failed(error)
      this.release()
    }
    const late = machine.arrivals.setTimeout(() => over(new Error('timeout expired')), CONNECT_MS)
    this.#there.send(() => {
      if (database.isDown)
        return this.#back.send(() => over(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })))
      this.#backend = database.open(machine.name, () => this.#back.send(() => this.#lost()))
      this.#back.send(() => over())
    })
  }

  on(_: 'error' | 'end', listener: (error?: Error) => void): void {
    this.#ended.push(listener)
  }

  query(query: PostgresQuery): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(new Error('the connection is closed'))
      const { arrivals } = this.#options.machine
      const failed = (error: Error) => {
        if (this.#waiting.delete(failed)) reject(error)
        arrivals.clearTimeout(late)
      }
      const late = arrivals.setTimeout(() => failed(new Error('Query read timeout')), ANSWER_MS)
      this.#waiting.add(failed)
      const answered = (rows: readonly unknown[]) => {
        if (this.#waiting.delete(failed)) resolve({ rows })
        arrivals.clearTimeout(late)
      }
      this.#there.send(() => {
        this.#last = this.#last
          .then(() => this.#run(query))
          .then(
            rows => this.#back.send(() => answered(rows)),
            (error: Error) => this.#back.send(() => failed(error))
          )
      })
    })
  }

  release(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#fail(new Error('the connection was closed'))
    this.#there.send(() => this.#backend && this.#options.database.end(this.#backend))
  }

  /** The server has no session any more: it answers nothing, and tells only of the end. */
  async #run(query: PostgresQuery): Promise<readonly unknown[]> {
    const { database, data } = this.#options
    const backend = this.#backend
    if (!backend?.isAlive) return new Promise(() => {})
    return ((await data(backend, query)) ?? database.run(backend, query)) as readonly unknown[]
  }

  /** Whoever has not listened yet hears of it at the first statement. */
  #lost(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    const error = new Error('the server has ended the session')
    this.#fail(error)
    for (const ended of this.#ended) ended(error)
  }

  #fail(error: Error): void {
    for (const failed of Array.from(this.#waiting)) failed(error)
  }
}
