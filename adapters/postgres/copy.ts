import type { Logger } from '../../runtime/ports/logger.ts'
import {
  COPIED_TABLES,
  PAGE_CHARACTERS,
  PAGE_ROWS,
  type CopiedRow,
  type CopiedTable,
  type CopySource,
  type CopyTarget
} from '../rows/copied-rows.ts'
import { type Cell, originalText, StorageError, storedText, checksumOf, thisHolder } from '../rows/damage.ts'
import { checkMigrated, SHARDS } from './schema/migrate.ts'
import { DatabaseOwner } from './session/owner.ts'
import { placeName, poolOf } from './session/pool.ts'
import type { PostgresCell, Session } from './session/session.ts'
import { binaryArray, type ColumnType, nameKeyOf, shardOf } from './write/row-shapes.ts'

/**
 * A table: its key, its column with a long text, all columns in the order of the checksum, and those that this leaves
 * out.
 */
interface Shape {
  readonly key: readonly string[]
  readonly long: string
  readonly columns: Readonly<Record<string, ColumnType>>
  readonly unsummed?: string
}

const NAMES = { tenant: 'text', principal: 'text', context_id: 'text' } as const
const BODY = { body: 'text' } as const

const SHAPES: Readonly<Record<CopiedTable, Shape>> = {
  contexts: {
    key: ['context'],
    long: 'snapshot',
    unsummed: 'tasks',
    columns: {
      context: 'int8',
      shard: 'int4',
      ...NAMES,
      commits: 'int8',
      at_ms: 'float8',
      tasks: 'int4',
      messages: 'int4',
      snapshot: 'text'
    }
  },
  tasks: {
    key: ['task'],
    long: 'task_id',
    columns: {
      context: 'int8',
      task: 'int8',
      shard: 'int4',
      ...NAMES,
      task_id: 'text',
      state: 'text',
      time: 'text',
      status_at: 'int4',
      generation: 'int4',
      messages: 'int4',
      bytes: 'int8',
      wake_at_ms: 'float8',
      ended_at_ms: 'float8'
    }
  },
  snapshots: {
    key: ['task'],
    long: 'snapshot',
    columns: { task: 'int8', context: 'int8', snapshot: 'text' },
    unsummed: 'context'
  },
  events: {
    key: ['task', 'generation'],
    long: 'body',
    columns: { task: 'int8', generation: 'int4', is_term: 'bool', ...BODY }
  },
  messages: {
    key: ['context', 'number'],
    long: 'body',
    columns: { context: 'int8', number: 'int4', task: 'int8', ...BODY, generation: 'int4' },
    unsummed: 'generation'
  },
  journal: {
    key: ['task', 'key'],
    long: 'body',
    columns: { task: 'int8', key: 'text', entry: 'int8', name: 'text', ...BODY },
    unsummed: 'entry'
  },
  sends: {
    key: ['tenant', 'principal', 'key'],
    long: 'body',
    columns: {
      tenant: 'text',
      principal: 'text',
      key: 'text',
      context_id: 'text',
      shard: 'int4',
      expires_at_ms: 'float8',
      ...BODY
    }
  },
  webhooks: {
    key: ['place'],
    long: 'body',
    columns: { place: 'int8', shard: 'int4', context: 'int8', task: 'int8', key: 'text', is_open: 'bool', ...BODY },
    unsummed: 'place'
  },
  transitions: {
    key: ['chart', 'previous', 'taken', 'writer'],
    long: 'taken',
    columns: {
      chart: 'text',
      previous: 'text',
      taken: 'text',
      writer: 'int4',
      count: 'int8',
      timed: 'int8',
      ms: 'int8',
      at_ms: 'float8'
    }
  }
}

/** The schema of the command line. */
const SCHEMA = 'taskchart'

/** Owns a database for a copy. */
async function owned(url: string, logger: Logger, isTarget: boolean) {
  const place = placeName(url, 'db copy')
  const pool = poolOf(url, 2)
  const owner = new DatabaseOwner({
    pool,
    place,
    schema: SCHEMA,
    shards: SHARDS,
    holder: thisHolder(),
    logger,
    isCopied: isTarget
  })
  const close = async () => {
    await owner.close()
    await pool.end()
  }
  try {
    if (!isTarget) await checkMigrated(pool, SCHEMA, place)
    await owner.open()
    const { session, shards } = owner.owned
    // One statement may go through a whole table.
    await session.run('SET statement_timeout = 0')
    return { place, session, shards: shards.length, close }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * Opens a database of `postgresStore` to be copied. No server may use it meanwhile. Rejects with StorageError for an
 * unusable one.
 */
export async function postgresCopySource(url: string, logger: Logger): Promise<CopySource> {
  const { session, close } = await owned(url, logger, false)
  return { pages: table => pagesOf(session, table), close }
}

async function* pagesOf(session: Session, table: CopiedTable): AsyncGenerator<CopiedRow[], void, undefined> {
  const { key, long, columns } = SHAPES[table]
  const names = Object.keys(columns)
  const order = key.join(', ')
  const page = (from: string) => `
    SELECT ${names.join(', ')}, sum FROM (
      SELECT *, sum(octet_length(${long})) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) - octet_length(${long}) AS earlier
      FROM (SELECT * FROM ${table} ${from} ORDER BY ${order} LIMIT ${PAGE_ROWS}) AS page
    ) AS sized WHERE earlier < ${PAGE_CHARACTERS} ORDER BY ${order}`
  const next = `WHERE (${order}) > (${key.map((name, i) => `$${i + 1}::${columns[name]}`).join(', ')})`
  for (let rows = await session.once(page('')); rows.length > 0;) {
    yield rows.map(fields => copiedRow(table, fields))
    const last = rows.at(-1) as PostgresCell[]
    rows = await session.once(
      page(next),
      key.map(name => last[names.indexOf(name)])
    )
  }
}

function copiedRow(table: CopiedTable, fields: readonly PostgresCell[]): CopiedRow {
  const { columns, unsummed } = SHAPES[table]
  const cells: Record<string, Cell> = {}
  const summed: Cell[] = []
  for (const [i, [name, type]] of Object.entries(columns).entries()) {
    const cell = cellOf(type, fields[i] ?? null)
    cells[camelCase(name)] = cell
    if (name !== unsummed) summed.push(cell)
  }
  const isDamaged = Number(fields.at(-1)) !== checksumOf(summed)
  return { cells: { ...cells, ...nameIn(table, cells) }, isDamaged }
}

function cellOf(type: ColumnType, field: PostgresCell): Cell {
  if (field === null || type === 'text') return field
  return type === 'bool' ? field === 't' : Number(field)
}

/** The whole key of a send or webhook, which is in its body. A damaged body may have none. */
function nameIn(
  table: CopiedTable,
  { key = null, body = null }: Readonly<Record<string, Cell>>
): { readonly name?: Cell } {
  if (table !== 'sends' && table !== 'webhooks') return {}
  try {
    const { key, id } = JSON.parse(String(body)) as { readonly key?: string; readonly id?: string }
    return { name: storedText(String(key ?? id)) }
  } catch {
    return { name: key }
  }
}

/**
 * Opens a database that takes a copy of `from`, and creates its tables. Until the copy is finished, no server can use
 * it. A copy may begin again in the database of an unfinished one. Rejects with StorageError for an unusable database,
 * and for one that has data.
 */
export async function postgresCopyTarget(url: string, from: string, logger: Logger): Promise<CopyTarget> {
  const { place, session, shards, close } = await owned(url, logger, true)
  try {
    const [[hasData] = []] = await session.once(`
      SELECT NOT EXISTS (SELECT FROM meta WHERE name = 'copy') AND (EXISTS (SELECT FROM contexts) OR EXISTS (SELECT FROM sends))`)
    if (hasData === 't')
      throw new StorageError(`${place} has data, and a copy overwrites nothing. Give another database.`)
    await session.once(`INSERT INTO meta VALUES ('copy', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, [
      from
    ])
    await session.run(`TRUNCATE ${COPIED_TABLES.join(', ')}, counters; SET synchronous_commit = off`)
  } catch (error) {
    await close()
    throw error
  }
  return {
    add: async (table, rows) => {
      if (rows.length > 0) await insert(session, table, await withShards(session, table, rows, shards))
    },
    finish: async () => {
      await session.run(`
        SET synchronous_commit = on;
        SELECT setval('numbers', greatest((SELECT max(context) FROM contexts), (SELECT max(task) FROM tasks)) + 1, false);
        SELECT setval('places', max(place)) FROM webhooks;
        SELECT setval('entries', max(entry)) FROM journal;
        DELETE FROM meta WHERE name = 'copy'`)
    },
    close
  }
}

/** Rows with the cells that only PostgreSQL has. */
async function withShards(
  session: Session,
  table: CopiedTable,
  rows: readonly CopiedRow[],
  shards: number
): Promise<CopiedRow[]> {
  const tasks = new Map<number, { readonly context: number; readonly shard: number }>()
  const isOfTask = table === 'snapshots' || table === 'webhooks'
  if (isOfTask) {
    const found = await session.once('SELECT task, context, shard FROM tasks WHERE task = ANY ($1::bigint[])', [
      binaryArray(
        'int8',
        rows.map(({ cells }) => Number(cells.task))
      )
    ])
    for (const [task, context, shard] of found)
      tasks.set(Number(task), { context: Number(context), shard: Number(shard) })
  }
  return rows.map(({ cells, isDamaged }) => {
    const { tenant = '', principal = '', contextId, name } = cells
    const text = (cell: Cell) => originalText(String(cell))
    const shard =
      contextId === undefined || isDamaged
        ? 0
        : shardOf({ tenant: text(tenant), principal: text(principal), contextId: text(contextId) }, shards)
    return {
      cells: {
        ...cells,
        shard,
        ...(name !== undefined && { key: nameKeyOf(String(name)) }),
        ...(isOfTask && (tasks.get(Number(cells.task)) ?? { context: 0 }))
      },
      isDamaged
    }
  })
}

async function insert(session: Session, table: CopiedTable, rows: readonly CopiedRow[]): Promise<void> {
  const { columns, unsummed } = SHAPES[table]
  const names = Object.keys(columns)
  const types: readonly ColumnType[] = [...Object.values(columns), 'int8']
  const lines = rows.map(({ cells, isDamaged }) => {
    const own = Object.entries(columns).map(([name, type]) => typed(type, cells[camelCase(name)] ?? null))
    return [...own, checksumOf(own.filter((_, i) => names[i] !== unsummed)) + Number(isDamaged)]
  })
  const values = types.map((type, i) =>
    binaryArray(
      type,
      lines.map(line => line[i] ?? null)
    )
  )
  const insertion = `INSERT INTO ${table} (${names.join(', ')}, sum) SELECT * FROM unnest(${types.map((type, i) => `$${i + 1}::${type}[]`).join(', ')})`
  await session.rows(
    {
      name: `taskchart_copy_${table}`,
      text: table === 'tasks' ? `WITH added AS (${insertion} RETURNING tenant, principal, state) ${COUNT}` : insertion
    },
    values
  )
}

const COUNT = `
  INSERT INTO counters (tenant, principal, state, slot, count) SELECT tenant, principal, state, 0, count(*) FROM added GROUP BY tenant, principal, state
  ON CONFLICT (tenant, principal, state, slot) DO UPDATE SET count = counters.count + excluded.count`

/** A cell of another engine, which may have numbers for booleans. */
function typed(type: ColumnType, cell: Cell): Cell {
  return type === 'bool' && cell !== null ? Boolean(cell) : cell
}

function camelCase(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
}
