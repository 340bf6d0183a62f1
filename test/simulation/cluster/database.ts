import {
  BEAT,
  CLUSTER,
  END,
  ENTER,
  FORGET,
  FORMATS,
  GIVE,
  LOOK,
  NOW,
  SESSION_AT_ADDRESS,
  parseFormat,
  TAKE
} from '../../../adapters/cluster/placement/statements.ts'
import { POSTGRES_MIGRATIONS } from '../../../adapters/postgres/schema/migrate.ts'
import type { PostgresQuery } from '../../../adapters/postgres/session/pool.ts'
import type { Journal } from '../journal.ts'
import type { ClockView } from '../virtual-clock.ts'
import type { Violations } from '../violations.ts'

/** A session, as the server has it. */
export interface Backend {
  readonly pid: number
  /** The node that has opened it. */
  readonly node: string
  isAlive: boolean
  /** Whether it has the lock by which a node is present. */
  isPresent: boolean
  readonly shards: Set<number>
  /** Tells its client that it has ended. */
  readonly ended: () => void
}

interface NodeRow {
  readonly pid: number
  beats: number
  takes: boolean
  readonly version: string
}

/** An error as PostgreSQL sends it. */
class ServerError extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** What a database is made of. `shards` is their number. */
export interface DatabaseOptions {
  readonly shards: number
  readonly clock: ClockView
  readonly journal: Journal
  readonly violations: Violations
}

type Rows = readonly (readonly unknown[])[]

/** Statements that are part of no list. */
const OTHERS: readonly (readonly [
  beginning: RegExp,
  rows: (database: Database, backend: Backend, values: readonly unknown[]) => Rows
])[] = [
  [/^\s*SET /, () => []],
  // The role lacks no right.
  [/^\s*WITH space AS/, () => []],
  [/^SELECT pg_backend_pid\(\), current_setting/, (_, { pid }) => [[String(pid), '', '']]],
  [/^\s*SELECT pg_is_in_recovery\(\)/, () => [['f', '150000', 'on', 'on', 'f', 'UTF8']]],
  [/^\s*SELECT to_regclass/, () => [['t', '9']]],
  [
    /^SELECT name, value FROM meta/,
    ({ shards }) => [
      ['version', String(POSTGRES_MIGRATIONS.length)],
      ['shards', String(shards)]
    ]
  ],
  // Nodes join one at a time: each of these statements is one turn of the world.
  [/^SELECT pg_advisory_(?:un)?lock\(hashtext\('taskchart join /, () => []],
  [/^INSERT INTO meta VALUES/, (database, _, [name, value]) => database.setMeta(String(name), String(value))],
  [/^SELECT pg_advisory_lock\(/, (_, backend) => ((backend.isPresent = true), [])],
  [/^UPDATE nodes SET takes = false WHERE address/, (database, _, [address]) => database.stopsTaking(String(address))],
  [/^DELETE FROM nodes WHERE address/, (database, _, [address, pid]) => database.leaves(String(address), Number(pid))]
]

/**
 * PostgreSQL, as far as placement knows it: sessions, their advisory locks, and the tables of nodes and shards. It does
 * what the statements of `postgres-placement` say, and refuses any other. What is written survives its crashes;
 * sessions and their locks do not.
 */
export class Database {
  readonly shards: number
  readonly #options: DatabaseOptions
  readonly #epochs: number[]
  /** The version of the last owner of each shard. */
  readonly #versions: (string | undefined)[]
  readonly #owners = new Map<number, Backend>()
  readonly #nodes = new Map<string, NodeRow>()
  readonly #backends = new Map<number, Backend>()
  readonly #meta = new Map<string, string>()
  #pids = 0
  #isDown = false
  readonly #prepared: Readonly<Record<string, (backend: Backend, values: readonly unknown[]) => Rows>> = {
    [NOW.name]: () => this.#now(),
    [SESSION_AT_ADDRESS.name]: ({ pid }, [address]) => this.#other(pid, String(address)),
    [CLUSTER.name]: ({ pid }) => [
      [this.#present.some(other => other.pid !== pid) ? 't' : 'f', this.#meta.get('secret digest') ?? null]
    ],
    [FORGET.name]: ({ pid }, [address]) => this.#forget(pid, String(address)),
    [ENTER.name]: ({ pid }, [address, takes, holder]) =>
      this.#enter(pid, String(address), takes === true, versionOf(holder)),
    [FORMATS.name]: () => this.#versions.map(version => [version ?? null]),
    [BEAT.name]: (_, [address, pid]) => this.#beat(String(address), Number(pid)),
    [LOOK.name]: () => this.#look(),
    [END.name]: (_, [pids]) => this.#endAll(pids as readonly number[]),
    [TAKE.name]: (backend, [shards, format, holder]) =>
      this.#take(backend, shards as readonly number[], Number(format), versionOf(holder)),
    [GIVE.name]: (backend, [shards]) => this.#give(backend, shards as readonly number[])
  }

  constructor(options: DatabaseOptions) {
    this.shards = options.shards
    this.#options = options
    this.#epochs = Array.from({ length: options.shards }, () => 0)
    this.#versions = this.#epochs.map(() => undefined)
  }

  get isDown(): boolean {
    return this.#isDown
  }

  /** How often shards got an owner. */
  get moves(): number {
    return this.#epochs.reduce((sum, epoch) => sum + epoch, 0)
  }

  /** The nodes of the shards. */
  get owners(): ReadonlyMap<number, string> {
    return new Map([...this.#owners].map(([shard, { node }]) => [shard, node]))
  }

  open(node: string, ended: () => void): Backend {
    const backend: Backend = { pid: (this.#pids += 1), node, isAlive: true, isPresent: false, shards: new Set(), ended }
    this.#backends.set(backend.pid, backend)
    return backend
  }

  /** Runs a statement. Throws an error of the server. */
  run(backend: Backend, { name, text, values = [] }: PostgresQuery): Rows {
    const prepared = name === undefined ? undefined : this.#prepared[name]
    if (prepared) return prepared(backend, values)
    const other = OTHERS.find(([beginning]) => beginning.test(text))
    if (!other) this.#options.violations.add(`the database does not know the statement ${name ?? text}`)
    return other?.[1](this, backend, values) ?? []
  }

  /** What `check_owner` does. Throws unless a session has a shard in this epoch. */
  checkOwner(shard: number, epoch: number): void {
    if (this.#epochs[shard] !== epoch) throw new ServerError('TC001', 'another process owns the shard')
  }

  /** Who has the lock of a shard, and in which epoch. */
  ownership(shard: number): { readonly backend: Backend | undefined; readonly epoch: number } {
    return { backend: this.#owners.get(shard), epoch: this.#epochs[shard] ?? 0 }
  }

  /** Ends a session, whose locks are free then. */
  end(backend: Backend): void {
    if (!backend.isAlive) return
    backend.isAlive = false
    this.#backends.delete(backend.pid)
    for (const shard of backend.shards) this.#owners.delete(shard)
    backend.ended()
  }

  /** Ends the session that has the locks of a node. */
  endNode(node: string): void {
    for (const backend of this.#backends.values()) if (backend.node === node && backend.isPresent) this.end(backend)
  }

  /** A node loses the locks of its shards, and keeps its session: nothing but the epochs tells. */
  unlock(node: string): void {
    for (const backend of this.#backends.values()) {
      if (backend.node !== node) continue
      for (const shard of backend.shards) this.#owners.delete(shard)
      backend.shards.clear()
    }
  }

  /** All sessions of a node end, as when its host is not heard of for long. */
  forgetNode(node: string): void {
    for (const backend of this.#backends.values()) if (backend.node === node) this.end(backend)
  }

  crash(): void {
    this.#isDown = true
    this.#options.journal.note('the database is down')
    for (const backend of this.#backends.values()) this.end(backend)
  }

  restart(): void {
    this.#isDown = false
    this.#options.journal.note('the database is up')
  }

  setMeta(name: string, value: string): Rows {
    this.#meta.set(name, value)
    return []
  }

  stopsTaking(address: string): Rows {
    const row = this.#nodes.get(address)
    if (row) row.takes = false
    return []
  }

  leaves(address: string, pid: number): Rows {
    if (this.#nodes.get(address)?.pid === pid) this.#nodes.delete(address)
    return []
  }

  #now(): Rows {
    return [[String(this.#options.clock.now())]]
  }

  #forget(pid: number, address: string): Rows {
    for (const [other, row] of this.#nodes) if (row.pid === pid && other !== address) this.#nodes.delete(other)
    return []
  }

  #enter(pid: number, address: string, takes: boolean, version: string): Rows {
    this.#nodes.set(address, { pid, beats: (this.#nodes.get(address)?.beats ?? -1) + 1, takes, version })
    return [[String(pid)]]
  }

  #beat(address: string, pid: number): Rows {
    const row = this.#nodes.get(address)
    if (row?.pid !== pid) return []
    row.beats += 1
    return this.#now()
  }

  /** The sessions that have the lock of a node. */
  get #present(): Backend[] {
    return [...this.#backends.values()].filter(({ isPresent }) => isPresent)
  }

  #other(pid: number, address: string): Rows {
    const row = this.#nodes.get(address)
    return row && row.pid !== pid && this.#present.some(other => other.pid === row.pid)
      ? [[String(row.pid), String(row.beats)]]
      : []
  }

  #look(): Rows {
    const rowOf = (pid: number) => [...this.#nodes].find(([, row]) => row.pid === pid)
    const cells = (isNode: boolean, object: number, { pid }: Backend) => {
      const [address, row] = rowOf(pid) ?? []
      return [
        isNode ? 't' : 'f',
        String(object),
        String(pid),
        address ?? null,
        row ? (row.takes ? 't' : 'f') : null,
        row ? String(row.beats) : null,
        isNode && row ? row.version : null
      ]
    }
    return [
      ...this.#present.map(backend => cells(true, backend.pid, backend)),
      ...[...this.#owners].map(([shard, backend]) => cells(false, shard, backend))
    ]
  }

  #endAll(pids: readonly number[]): Rows {
    for (const pid of pids) {
      const backend = this.#backends.get(pid)
      if (!backend) continue
      this.#options.journal.note(`session ${pid} of ${backend.node} is ended`)
      this.end(backend)
    }
    return []
  }

  #take(backend: Backend, shards: readonly number[], format: number, version: string): Rows {
    return shards.flatMap(shard => {
      const owner = this.#owners.get(shard)
      if (owner && owner !== backend) return []
      if (format < parseFormat(this.#versions[shard])) return [[String(shard), null]]
      this.#owners.set(shard, backend)
      backend.shards.add(shard)
      const epoch = (this.#epochs[shard] ?? 0) + 1
      this.#epochs[shard] = epoch
      this.#versions[shard] = version
      this.#options.journal.note(`${backend.node} owns shard ${shard} in epoch ${epoch}`)
      return [[String(shard), String(epoch)]]
    })
  }

  #give(backend: Backend, shards: readonly number[]): Rows {
    for (const shard of shards) {
      if (this.#owners.get(shard) !== backend) continue
      this.#owners.delete(shard)
      backend.shards.delete(shard)
      this.#options.journal.note(`${backend.node} has given shard ${shard}`)
    }
    return []
  }
}

/** The version in the JSON of a holder. */
function versionOf(holder: unknown): string {
  return String((JSON.parse(String(holder)) as { readonly version: unknown }).version)
}
