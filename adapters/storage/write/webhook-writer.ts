import type { NewWebhook, WebhookNote, WebhookProgress, WebhookRow, Scope } from '../../../runtime/store/rows.ts'
import type { CommitRows, WebhookChange, WebhookChanged } from '../../rows/commit-rows.ts'
import { reading, storedText, unlessDamaged } from '../../rows/damage.ts'
import type { Database, Statement } from '../driver.ts'
import type { StoredTaskRow, Tables, WebhookTableRow } from '../tables.ts'

/** Writes webhooks: one replaces that with its task and id. The caller opens the transaction. */
export class WebhookWriter {
  readonly #tables: Tables
  readonly #find
  readonly #change: (row: WebhookTableRow) => void
  readonly #place: Statement
  readonly #drop: Statement
  readonly #others: Statement
  readonly #newest: Statement

  constructor(database: Database, tables: Tables) {
    this.#tables = tables
    this.#find = {
      scope: tables.scopes.reading(['tenant', 'principal']),
      task: tables.tasks.reading(['taskId']),
      webhook: tables.webhooks.reading(['task', 'id'])
    }
    this.#change = tables.webhooks.updating(['isOpen', 'body'], ['place'])
    this.#place = database.prepare('SELECT place FROM webhooks WHERE task = ? AND id = ?')
    this.#drop = database.prepare('DELETE FROM webhooks WHERE place = ?')
    this.#others = database.prepare('SELECT count(*) AS count FROM webhooks WHERE task = ? AND id <> ?')
    this.#newest = database.prepare('SELECT max(place) AS newest FROM webhooks')
  }

  /** Makes a change, and returns the store port's result. */
  change(change: WebhookChange): WebhookChanged {
    if ('notes' in change) return change.notes.map(note => this.#note(note))
    const { scope } = change
    if ('delete' in change) return this.#delete(scope, change.taskId, change.delete)
    const { write, limit } = change
    const task = this.#taskOf(scope, write.taskId)
    if (!task) return 'absent'
    if (Number(this.#others.get(task.task, storedText(write.id))?.count) >= limit) return 'full'
    this.#write(task, write, task.generation)
    return 'written'
  }

  /** Writes a webhook that came with a message; ignores it without its task. */
  writeWithMessage(
    task: StoredTaskRow | undefined,
    { told: generation, ...webhook }: CommitRows['webhooks'][number]
  ): void {
    if (task) this.#write(task, webhook, generation)
  }

  #write({ task }: StoredTaskRow, webhook: NewWebhook, generation: number): void {
    const before = this.#find.webhook.one(task, storedText(webhook.id))
    const progress: WebhookProgress = { told: before ? rowIn(before).progress.told : generation, tries: 0 }
    const body = JSON.stringify({ ...webhook, progress } satisfies WebhookRow)
    if (before) this.#change({ ...before, isOpen: 1, body })
    else
      this.#tables.webhooks.insert({
        place: Number(this.#newest.get()?.newest) + 1,
        task,
        id: storedText(webhook.id),
        isOpen: 1,
        body
      })
  }

  /** A damaged webhook counts as missing: nothing more is delivered to it. */
  #note({ scope, taskId, id, progress }: WebhookNote): boolean {
    const task = this.#taskOf(scope, taskId)
    const found = task && unlessDamaged(() => this.#find.webhook.one(task.task, storedText(id)))
    if (!found) return false
    const body = JSON.stringify({ ...rowIn(found), progress } satisfies WebhookRow)
    this.#change({ ...found, isOpen: progress.end ? 0 : 1, body })
    return true
  }

  #delete(scope: Scope, taskId: string, id: string): boolean {
    const task = this.#taskOf(scope, taskId)
    const place = task && this.#place.get(task.task, storedText(id))?.place
    if (place !== undefined) this.#drop.run(place)
    return place !== undefined
  }

  #taskOf({ tenant, principal }: Scope, taskId: string): StoredTaskRow | undefined {
    return reading(`Task ${taskId}`, () => {
      const scope = this.#find.scope.one(storedText(tenant), storedText(principal))
      const task = this.#find.task.one(storedText(taskId))
      return task?.scope === scope?.scope ? task : undefined
    })
  }
}

function rowIn({ body }: WebhookTableRow): WebhookRow {
  return JSON.parse(body) as WebhookRow
}
