import { createHash } from 'node:crypto'
import { type ContextKey, contextName } from '../../../runtime/store/store.ts'
import { type Cell, DamagedRow, checksumOf } from '../../rows/damage.ts'
import type { PostgresCell } from '../session/session.ts'

/** A context's row without its snapshot. Texts are in their stored form. */
export interface PgContext {
  readonly context: number
  readonly shard: number
  readonly tenant: string
  readonly principal: string
  readonly contextId: string
  /** The number of its commits. */
  commits: number
  atMs: number
  /** The number of its tasks, ended ones included. The checksum leaves it out: sweeps change it in place. */
  tasks: number
  /** The number of its newest message. */
  messages: number
}

/** A task's row. Texts are in their stored form. */
export interface PgTask {
  readonly context: number
  readonly task: number
  readonly shard: number
  readonly tenant: string
  readonly principal: string
  readonly contextId: string
  readonly taskId: string
  state: string
  /** The time of its newest status, and the status's generation; '' and 0 before the first. */
  time: string
  statusAt: number
  generation: number
  /** The number of its messages. */
  messages: number
  /** The bytes of its events and messages. */
  bytes: number
  wakeAtMs: number | null
  /** The time of the commit that ended it; null while it is live. */
  endedAtMs: number | null
  /** A hash of its snapshot, if this process has written that. It is no column. */
  snapshotHash?: string
}

/** A webhook's row, in which `key` is its id. */
export interface PgWebhook {
  readonly shard: number
  readonly context: number
  readonly task: number
  readonly key: string
  readonly isOpen: boolean
  readonly body: string
}

/** The columns of a context, for {@link storedContextOf}. */
export const CONTEXT_COLUMNS =
  'contexts.context, contexts.shard, contexts.tenant, contexts.principal, contexts.context_id, contexts.commits, contexts.at_ms, contexts.tasks, contexts.messages, contexts.snapshot, contexts.sum'

/** The columns of a task, for {@link taskOf}. */
export const TASK_COLUMNS =
  'tasks.context, tasks.task, tasks.shard, tasks.tenant, tasks.principal, tasks.context_id, tasks.task_id, tasks.state, tasks.time, tasks.status_at, tasks.generation, tasks.messages, tasks.bytes, tasks.wake_at_ms, tasks.ended_at_ms, tasks.sum'

/** The number of {@link TASK_COLUMNS}, and the places of some of them. */
export const TASK_WIDTH = 16
export const TASK_AT = { task: 1, taskId: 6, time: 8, bytes: 12, wakeAtMs: 13 } as const

export function sumOfContext(
  { context, shard, tenant, principal, contextId, commits, atMs, messages }: PgContext,
  snapshot: string
): number {
  return checksumOf([context, shard, tenant, principal, contextId, commits, atMs, messages, snapshot])
}

export function sumOfTask({
  context,
  task,
  shard,
  tenant,
  principal,
  contextId,
  taskId,
  state,
  time,
  statusAt,
  generation,
  messages,
  bytes,
  wakeAtMs,
  endedAtMs
}: PgTask): number {
  return checksumOf([
    context,
    task,
    shard,
    tenant,
    principal,
    contextId,
    taskId,
    state,
    time,
    statusAt,
    generation,
    messages,
    bytes,
    wakeAtMs,
    endedAtMs
  ])
}

/** A context from its columns, with its snapshot. Throws DamagedRow. */
export function storedContextOf([
  context,
  shard,
  tenant,
  principal,
  contextId,
  commits,
  atMs,
  tasks,
  messages,
  snapshot,
  sum
]: readonly PostgresCell[]): { row: PgContext; snapshot: string } {
  const row: PgContext = {
    context: Number(context),
    shard: Number(shard),
    tenant: String(tenant),
    principal: String(principal),
    contextId: String(contextId),
    commits: Number(commits),
    atMs: Number(atMs),
    tasks: Number(tasks),
    messages: Number(messages)
  }
  return { row: verifyRow('contexts', row, sumOfContext(row, String(snapshot)), sum), snapshot: String(snapshot) }
}

/** A task from its columns. Throws DamagedRow. */
export function taskOf([
  context,
  task,
  shard,
  tenant,
  principal,
  contextId,
  taskId,
  state,
  time,
  statusAt,
  generation,
  messages,
  bytes,
  wakeAtMs,
  endedAtMs,
  sum
]: readonly PostgresCell[]): PgTask {
  const row: PgTask = {
    context: Number(context),
    task: Number(task),
    shard: Number(shard),
    tenant: String(tenant),
    principal: String(principal),
    contextId: String(contextId),
    taskId: String(taskId),
    state: String(state),
    time: String(time),
    statusAt: Number(statusAt),
    generation: Number(generation),
    messages: Number(messages),
    bytes: Number(bytes),
    wakeAtMs: numberOf(wakeAtMs),
    endedAtMs: numberOf(endedAtMs)
  }
  return verifyRow('tasks', row, sumOfTask(row), sum)
}

/** Throws DamagedRow unless the stored checksum is that of the cells. */
export function verifyRow<Row>(table: string, row: Row, expected: number, stored: PostgresCell | undefined): Row {
  if (Number(stored) !== expected) throw new DamagedRow(table)
  return row
}

function numberOf(field: PostgresCell | undefined): number | null {
  return field === null || field === undefined ? null : Number(field)
}

/** Whether two rows of a task have the same columns. */
export function isSameTask(one: PgTask, other: PgTask): boolean {
  return (Object.keys(one) as (keyof PgTask)[]).every(name => name === 'snapshotHash' || one[name] === other[name])
}

/** The longest text in a key column of a name that is not looked up by order. An index takes 2,704 bytes in all. */
const LONGEST_KEY = 400

/** A key column of a name: the name, or the hash of a long one. */
export function nameKeyOf(name: string): string {
  return name.length <= LONGEST_KEY ? name : `sha256 ${hashOf(name)}`
}

/** A hash that no two texts share. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

/** A context's name in caches. */
export function contextNameOf(tenant: string, principal: string, contextId: string): string {
  return `${tenant.length}.${principal.length}.${tenant}${principal}${contextId}`
}

/**
 * The shard of a context. It is N if the id ends in `~N`, with N below the number of shards. Else it is a hash modulo
 * that number: the first four bytes, as a big-endian number, of the SHA-256 of `contextName`. A task has the shard of
 * its context. It never changes.
 */
export function shardOf(key: ContextKey, shards: number): number {
  const [, end] = /~(0|[1-9]\d{0,5})$/.exec(key.contextId) ?? []
  if (end !== undefined && Number(end) < shards) return Number(end)
  return createHash('sha256').update(contextName(key)).digest().readUInt32BE(0) % shards
}

/** The types of columns in a list of rows. */
export type ColumnType = 'bool' | 'int4' | 'int8' | 'float8' | 'text'

/** The object ids of the types, which are fixed. */
const OIDS: Readonly<Record<ColumnType, number>> = { bool: 16, int8: 20, int4: 23, text: 25, float8: 701 }

const SIZES: Readonly<Record<Exclude<ColumnType, 'text'>, number>> = { bool: 1, int4: 4, int8: 8, float8: 8 }

/** Bytes before the elements: dimensions, whether there is a null, type, length, and first index. */
const HEADER_BYTES = 20
const LENGTH_BYTES = 4

/**
 * A one-dimensional array in PostgreSQL's binary form. `pg` sends a buffer as it is, while it would quote and escape an
 * array: for bodies of JSON that costs several times as much. Null for no values.
 */
export function binaryArray(type: ColumnType, values: readonly Cell[]): Buffer | null {
  if (values.length === 0) return null
  const lengths = values.map(value =>
    value === null ? -1 : type === 'text' ? Buffer.byteLength(String(value)) : SIZES[type]
  )
  const bytes = lengths.reduce((sum, length) => sum + LENGTH_BYTES + Math.max(length, 0), HEADER_BYTES)
  const buffer = Buffer.allocUnsafe(bytes)
  buffer.writeInt32BE(1, 0)
  buffer.writeInt32BE(lengths.includes(-1) ? 1 : 0, 4)
  buffer.writeInt32BE(OIDS[type], 8)
  buffer.writeInt32BE(values.length, 12)
  buffer.writeInt32BE(1, 16)
  let at = HEADER_BYTES
  for (const [index, value] of values.entries()) {
    const length = lengths[index] as number
    buffer.writeInt32BE(length, at)
    at += LENGTH_BYTES
    if (length < 0) continue
    write(buffer, type, value, at)
    at += length
  }
  return buffer
}

function write(buffer: Buffer, type: ColumnType, value: Cell, at: number): void {
  if (type === 'text') buffer.write(String(value), at)
  else if (type === 'bool') buffer[at] = value === true ? 1 : 0
  else if (type === 'int4') buffer.writeInt32BE(Number(value), at)
  else if (type === 'float8') buffer.writeDoubleBE(Number(value), at)
  else writeInt8(buffer, Number(value), at)
}

/** A safe integer as 8 bytes. Two writes take less time than a bigint. */
function writeInt8(buffer: Buffer, value: number, at: number): void {
  buffer.writeInt32BE(Math.floor(value / 2 ** 32), at)
  buffer.writeUInt32BE(value >>> 0, at + 4)
}
