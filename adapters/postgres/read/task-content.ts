import { fitsInto, type Scope } from '../../../runtime/store/rows.ts'
import type { ContextKey, MessageRow, ReadOptions, StoredTask, TaskEvent } from '../../../runtime/store/store.ts'
import { applyEvent, newTaskRecord, projectTask } from '../../../runtime/store/task-record.ts'
import { applyRows, checkCount, checkEntries } from '../../rows/commit-rows.ts'
import { DamagedRow, originalText, checksumOf, unlessDamaged } from '../../rows/damage.ts'
import type { PostgresCell, Session } from '../session/session.ts'
import { binaryArray, type PgTask, verifyRow } from '../write/row-shapes.ts'
import { READS } from './statements.ts'

/** An event or message: the bodies by the number of their task. Throws DamagedRow when used. */
interface Found {
  readonly events: Map<number, PostgresCell[][]>
  readonly messages: Map<number, PostgresCell[][]>
}

/**
 * How a task is read: completely, or without history and artifacts because nobody wants them or because it is large.
 */
type Form = 'whole' | 'brief' | 'large'

/**
 * Reads the content of tasks up to the counts in their rows, so that rows and contents agree although they are two
 * statements. Gives one result for each row, in order: the task, or the error of its damaged rows.
 */
export async function readTasks(
  session: Session,
  scope: Scope,
  rows: readonly PgTask[],
  options: ReadOptions = {}
): Promise<(StoredTask | DamagedRow)[]> {
  const { historyLength, artifacts, within } = options
  const isBrief = historyLength === 0 && artifacts === false
  const fits = fitsInto(within)
  const forms = rows.map(({ bytes }): Form => (isBrief ? 'brief' : fits(bytes) ? 'whole' : 'large'))
  const whole = rows.filter((_, i) => forms[i] === 'whole')
  const brief = rows.filter((_, i) => forms[i] !== 'whole')
  const live = isBrief ? [] : rows.filter(({ endedAtMs }) => endedAtMs === null)
  const [wholeEvents, briefEvents, messages, snapshots] = [
    await rowsOf(session, READS.eventsOf, whole, ({ generation }) => generation),
    await rowsOf(session, READS.statusesOf, brief, ({ statusAt }) => statusAt),
    await rowsOf(session, READS.messagesOf, whole, row => row.messages),
    await snapshotsOf(session, live)
  ]
  const found: Found = { events: byTask([...wholeEvents, ...briefEvents]), messages: byTask(messages) }
  return rows.map((row, i) => {
    let damage: DamagedRow | undefined
    const task = unlessDamaged(
      () => {
        // A live task without an intact snapshot cannot be restored, so it counts as damaged.
        if (!isBrief && row.endedAtMs === null) snapshots(row)
        return taskFrom(scope, row, forms[i] as Form, found, options)
      },
      error => void (damage = error)
    )
    return task ?? (damage as unknown as DamagedRow)
  })
}

function taskFrom(
  { tenant, principal }: Scope,
  row: PgTask,
  form: Form,
  { events, messages }: Found,
  options: ReadOptions
): StoredTask {
  const key: ContextKey = { tenant, principal, contextId: originalText(row.contextId) }
  const record = newTaskRecord(key, originalText(row.taskId))
  const taskEvents = (events.get(row.task) ?? []).map(eventIn)
  if (form === 'whole') {
    const taskMessages = (messages.get(row.task) ?? []).map(messageIn)
    checkEntries(taskEvents, taskMessages, row.generation)
    checkCount(taskMessages.length, row.messages)
    applyRows(record, taskEvents, taskMessages)
    return projectTask(record, options)
  }
  if (row.statusAt > 0 && taskEvents.at(-1)?.generation !== row.statusAt) throw new DamagedRow('events')
  for (const event of taskEvents) applyEvent(record, event)
  record.generation = row.generation
  const task = projectTask(record, { historyLength: 0, artifacts: false })
  return form === 'brief' ? task : { ...task, large: { messages: row.messages, bytes: row.bytes } }
}

async function rowsOf(
  session: Session,
  statement: { name: string; text: string },
  tasks: readonly PgTask[],
  most: (row: PgTask) => number
): Promise<PostgresCell[][]> {
  if (tasks.length === 0) return []
  return session.rows(statement, [
    binaryArray(
      'int8',
      tasks.map(({ task }) => task)
    ),
    binaryArray('int4', tasks.map(most))
  ])
}

/** Reads the snapshots of live tasks. The result throws DamagedRow for a damaged or missing one. */
export async function snapshotsOf(session: Session, tasks: readonly PgTask[]): Promise<(row: PgTask) => string> {
  const rows =
    tasks.length === 0
      ? []
      : await session.rows(READS.snapshotsOf, [
          binaryArray(
            'int8',
            tasks.map(({ task }) => task)
          )
        ])
  const found = byTask(rows)
  return ({ task }) => {
    const [, snapshot, sum] = found.get(task)?.[0] ?? []
    if (snapshot === undefined || snapshot === null) throw new DamagedRow('snapshots')
    return verifyRow('snapshots', snapshot, checksumOf([task, snapshot]), sum)
  }
}

function byTask(rows: readonly PostgresCell[][]): Map<number, PostgresCell[][]> {
  const found = new Map<number, PostgresCell[][]>()
  for (const row of rows) {
    const task = Number(row[0])
    const known = found.get(task)
    if (known) known.push(row)
    else found.set(task, [row])
  }
  return found
}

/** The event in columns task, generation, is_term, body, sum. Throws DamagedRow. */
export function eventIn(fields: readonly PostgresCell[]): TaskEvent {
  return JSON.parse(eventBody(fields)) as TaskEvent
}

function eventBody([task, generation, isTerm, body, sum]: readonly PostgresCell[]): string {
  return verifyRow(
    'events',
    String(body),
    checksumOf([Number(task), Number(generation), isTerm === 't', String(body)]),
    sum
  )
}

/** The message in columns task, context, number, body, sum. Throws DamagedRow. */
export function messageIn([task, context, number, body, sum]: readonly PostgresCell[]): MessageRow {
  const cells = [Number(context), Number(number), task === null ? null : Number(task), String(body)]
  return JSON.parse(verifyRow('messages', String(body), checksumOf(cells), sum)) as MessageRow
}
