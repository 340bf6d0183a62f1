import type { Message } from '../../../machines/protocol/parts.ts'
import { textOf } from '../../../runtime/authoring/words.ts'
import { isErased, type Commit, type Erasure } from '../../../runtime/store/store.ts'
import type { TaskRow } from '../feed.ts'
import type { Redact } from './seen-step.ts'

/** Tasks that are known, those that changed last. */
export const KNOWN_TASKS = 10_000

/** Characters of a title. */
const LONGEST_TITLE = 80

/** Who hears of tasks. */
export interface TaskListener {
  changed(row: TaskRow): void
  removed(taskId: string): void
}

/** The tasks of all contexts, as commits tell of them. */
export class TaskIndex {
  /** By id, the longest unchanged first, but for those that were read from the store. */
  readonly #rows = new Map<string, TaskRow>()
  /** Those that were there before anybody looked, and of which nobody has read how they began. */
  readonly #unread = new Set<string>()
  readonly #redact: Redact
  readonly #listener: TaskListener

  constructor(redact: Redact, listener: TaskListener) {
    this.#redact = redact
    this.#listener = listener
  }

  get(taskId: string): TaskRow | undefined {
    return this.#rows.get(taskId)
  }

  /** All tasks, the last changed first. */
  get newest(): TaskRow[] {
    return [...this.#rows.values()].toSorted((a, b) => b.changedMs - a.changedMs)
  }

  committed({ key: { tenant, principal, contextId }, atMs, tasks, log }: Commit): void {
    for (const { taskId, state, generation } of tasks) {
      const before = this.#rows.get(taskId)
      const opening = before ? undefined : log.find((entry): entry is { message: Message } => 'message' in entry && entry.taskId === taskId && entry.generation === 0)
      if (!before && !opening) this.#unread.add(taskId)
      const { openedMs, title } = before ?? { openedMs: atMs, title: opening ? this.title(opening.message) : '' }
      const row = { taskId, contextId, owner: { tenant, principal }, state, generation, openedMs, changedMs: atMs, title }
      this.#rows.delete(taskId)
      this.#set(row)
    }
    for (const [oldest] of this.#rows) {
      if (this.#rows.size <= KNOWN_TASKS) break
      this.#remove(oldest)
    }
  }

  /** Takes a task as the store has it. Of one that changed since only how it began. */
  read(row: TaskRow): void {
    const { taskId, openedMs, title } = row
    const known = this.#rows.get(taskId)
    if (known ? !this.#unread.delete(taskId) : this.#rows.size >= KNOWN_TASKS) return
    this.#set(known ? { ...known, openedMs, title } : row)
  }

  erased(whose: Erasure): void {
    for (const { taskId, owner, contextId } of this.#rows.values()) {
      if (isErased(whose, { ...owner, contextId })) this.#remove(taskId)
    }
  }

  /** What a task is called by the message that opened it. */
  title(message: Message): string {
    const title = this.#redact(textOf(message).trimStart().slice(0, 2 * LONGEST_TITLE))
    return typeof title === 'string' ? title.slice(0, LONGEST_TITLE) : ''
  }

  #set(row: TaskRow): void {
    this.#rows.set(row.taskId, row)
    this.#listener.changed(row)
  }

  #remove(taskId: string): void {
    this.#rows.delete(taskId)
    this.#unread.delete(taskId)
    this.#listener.removed(taskId)
  }
}
