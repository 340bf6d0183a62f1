import type { NewWebhook, WebhookProgress, WebhookRow, Scope } from '../../../runtime/store/rows.ts'
import type { WebhookChange, WebhookChanged } from '../../rows/commit-rows.ts'
import { reading, storedText, checksumOf, unlessDamaged } from '../../rows/damage.ts'
import type { PostgresCell, Session } from '../session/session.ts'
import {
  binaryArray,
  nameKeyOf,
  type PgTask,
  type PgWebhook,
  TASK_AT,
  TASK_COLUMNS,
  taskOf,
  verifyRow
} from './row-shapes.ts'
import { WriteGroups } from './write-groups.ts'

/** The columns of a webhook, for {@link webhookOf}. */
export const WEBHOOK_COLUMNS =
  'webhooks.place, webhooks.shard, webhooks.context, webhooks.task, webhooks.key, webhooks.is_open, webhooks.body, webhooks.sum'

const OF_TASKS = {
  name: 'taskchart_webhooks_of_tasks',
  text: `SELECT ${WEBHOOK_COLUMNS} FROM webhooks WHERE task = ANY ($1::bigint[])`
}

const TASKS = {
  name: 'taskchart_webhook_tasks',
  text: `SELECT ${TASK_COLUMNS} FROM tasks WHERE task_id = ANY ($1::text[])`
}

/** A webhook and its place. */
export interface PlacedWebhook {
  readonly place: number
  readonly row: PgWebhook
}

/** A webhook from its columns. Throws DamagedRow. */
export function webhookOf([
  place,
  shard,
  context,
  task,
  key,
  isOpen,
  body,
  sum
]: readonly PostgresCell[]): PlacedWebhook {
  const row: PgWebhook = {
    shard: Number(shard),
    context: Number(context),
    task: Number(task),
    key: String(key),
    isOpen: isOpen === 't',
    body: String(body)
  }
  return { place: Number(place), row: verifyRow('webhooks', row, sumOfWebhook(row), sum) }
}

function sumOfWebhook({ shard, context, task, key, isOpen, body }: PgWebhook): number {
  return checksumOf([shard, context, task, key, isOpen, body])
}

/** The progress in a webhook's row. */
export function rowIn({ body }: Pick<PgWebhook, 'body'>): WebhookRow {
  return JSON.parse(body) as WebhookRow
}

/** The webhooks of some tasks, for a batch of writes to them. */
export class KnownWebhooks {
  readonly #rows = new Map<string, PostgresCell[] | PgWebhook>()
  readonly #changed = new Map<string, PgWebhook>()

  /** Reads the webhooks of these tasks. */
  async read(session: Session, tasks: readonly number[]): Promise<void> {
    if (tasks.length === 0) return
    for (const fields of await session.rows(OF_TASKS, [binaryArray('int8', tasks)]))
      this.#rows.set(`${fields[3]} ${fields[4]}`, fields)
  }

  /** The webhook of a task with this key. Throws DamagedRow. */
  find(task: number, key: string): PgWebhook | undefined {
    const row = this.#rows.get(`${task} ${key}`)
    return Array.isArray(row) ? webhookOf(row).row : row
  }

  progressOf(task: number, key: string): WebhookProgress | undefined {
    const row = this.find(task, key)
    return row && rowIn(row).progress
  }

  /** The place of a webhook, which may be damaged. */
  placeOf(task: number, key: string): number | undefined {
    const row = this.#rows.get(`${task} ${key}`)
    return Array.isArray(row) ? Number(row[0]) : undefined
  }

  countOthers(task: number, key: string): number {
    return Array.from(this.#rows.keys()).filter(name => name.startsWith(`${task} `) && name !== `${task} ${key}`).length
  }

  /** Puts a webhook in the place of that with its task and key. */
  put(row: PgWebhook): void {
    this.#rows.set(`${row.task} ${row.key}`, row)
    this.#changed.set(`${row.task} ${row.key}`, row)
  }

  /** Writes the last form of each changed webhook. */
  write(groups: WriteGroups): void {
    for (const row of this.#changed.values())
      groups.add('webhooks', row.shard, row.context, row.task, row.key, row.isOpen, row.body, sumOfWebhook(row))
  }
}

/** Makes the rows of a change of webhooks, and the store port's result. */
export async function changeWebhooks(
  session: Session,
  change: WebhookChange
): Promise<{ groups: WriteGroups; changed: WebhookChanged }> {
  const named =
    'notes' in change
      ? change.notes.map(({ taskId }) => taskId)
      : ['write' in change ? change.write.taskId : change.taskId]
  const tasks = new Map(
    (await session.rows(TASKS, [binaryArray('text', named.map(storedText))])).map(fields => [
      String(fields[TASK_AT.taskId]),
      fields
    ])
  )
  const webhooks = new KnownWebhooks()
  await webhooks.read(
    session,
    Array.from(tasks.values(), fields => Number(fields[TASK_AT.task]))
  )
  const taskOfScope = ({ tenant, principal }: Scope, taskId: string) =>
    reading(`Task ${taskId}`, () => {
      const fields = tasks.get(storedText(taskId))
      const task = fields && taskOf(fields)
      return task?.tenant === storedText(tenant) && task.principal === storedText(principal) ? task : undefined
    })
  const groups = new WriteGroups()
  const changed = changedBy(change, groups, webhooks, taskOfScope)
  webhooks.write(groups)
  return { groups, changed }
}

function changedBy(
  change: WebhookChange,
  groups: WriteGroups,
  webhooks: KnownWebhooks,
  taskOfScope: (scope: Scope, taskId: string) => PgTask | undefined
): WebhookChanged {
  if ('notes' in change) {
    return change.notes.map(({ scope, taskId, id, progress }) => {
      const task = taskOfScope(scope, taskId)
      const key = nameKeyOf(storedText(id))
      // A damaged webhook counts as missing: nothing more is delivered to it.
      const row = task && unlessDamaged(() => webhooks.find(task.task, key))
      if (row)
        webhooks.put({
          ...row,
          isOpen: progress.end === undefined,
          body: JSON.stringify({ ...rowIn(row), progress } satisfies WebhookRow)
        })
      return row !== undefined
    })
  }
  if ('delete' in change) {
    const task = taskOfScope(change.scope, change.taskId)
    const place = task && webhooks.placeOf(task.task, nameKeyOf(storedText(change.delete)))
    if (place !== undefined) groups.add('droppedWebhooks', place)
    return place !== undefined
  }
  const task = taskOfScope(change.scope, change.write.taskId)
  if (!task) return 'absent'
  const key = nameKeyOf(storedText(change.write.id))
  if (webhooks.countOthers(task.task, key) >= change.limit) return 'full'
  webhooks.put(webhookRow(task, key, change.write, webhooks.progressOf(task.task, key)))
  return 'written'
}

function webhookRow(
  { shard, context, task, generation }: PgTask,
  key: string,
  webhook: NewWebhook,
  before: WebhookProgress | undefined
): PgWebhook {
  const progress: WebhookProgress = { told: before?.told ?? generation, tries: 0 }
  return {
    shard,
    context,
    task,
    key,
    isOpen: true,
    body: JSON.stringify({ ...webhook, progress } satisfies WebhookRow)
  }
}
