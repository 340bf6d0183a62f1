import type { NewWebhook, StoredWebhook, WebhookProgress, WebhookRow } from '../rows.ts'
import type { LoggedTask } from './context.ts'
import { TimeIndex } from './time-index.ts'

interface Kept {
  readonly place: number
  readonly task: LoggedTask
  row: WebhookRow
}

/** The webhooks of the memory store, by task and id, with an index of active ones by place. */
export class MemoryWebhooks {
  readonly #tasks = new Map<LoggedTask, Map<string, Kept>>()
  /** By place, which is used as the time. */
  readonly #open = new TimeIndex<Kept>(
    ({ place }) => place,
    () => ''
  )
  #places = 0

  /** Number of a task's webhooks with another id. */
  othersOf(task: LoggedTask, id: string): number {
    const kept = this.#tasks.get(task)
    return (kept?.size ?? 0) - (kept?.has(id) ? 1 : 0)
  }

  /** Writes a webhook that continues after generation `told`, or at the position of the one that it replaces. */
  write(task: LoggedTask, { taskId, id, webhook, version }: NewWebhook, told: number): void {
    const webhooks = this.#tasks.get(task) ?? new Map<string, Kept>()
    const before = webhooks.get(id)
    const row = { taskId, id, webhook, version, progress: { told: before?.row.progress.told ?? told, tries: 0 } }
    const kept = before ?? { place: (this.#places += 1), task, row }
    if (!before || before.row.progress.end) this.#open.add(kept)
    kept.row = row
    this.#tasks.set(task, webhooks.set(id, kept))
  }

  of(task: LoggedTask): StoredWebhook[] {
    return Array.from(this.#tasks.get(task)?.values() ?? [], stored)
  }

  open(limit: number, after: number): StoredWebhook[] {
    return this.#open.read(limit, { atMs: after, id: '' }).map(stored)
  }

  /** Stores progress. Gives whether the webhook exists. */
  note(task: LoggedTask, id: string, progress: WebhookProgress): boolean {
    const kept = this.#tasks.get(task)?.get(id)
    if (!kept) return false
    kept.row = { ...kept.row, progress }
    if (progress.end) this.#close(kept)
    return true
  }

  /** Deletes a webhook. Gives whether it existed. */
  delete(task: LoggedTask, id: string): boolean {
    const kept = this.#tasks.get(task)?.get(id)
    if (!kept) return false
    this.#close(kept)
    this.#tasks.get(task)?.delete(id)
    return true
  }

  /** Deletes the webhooks of a task. */
  drop(task: LoggedTask): void {
    for (const kept of this.#tasks.get(task)?.values() ?? []) this.#close(kept)
    this.#tasks.delete(task)
  }

  #close({ place }: Kept): void {
    this.#open.delete({ atMs: place, id: '' })
  }
}

function stored({ place, task, row }: Kept): StoredWebhook {
  const { tenant, principal } = task.key
  return { scope: { tenant, principal }, row, generation: task.generation, hasEnded: task.endedAtMs < Infinity, place }
}
