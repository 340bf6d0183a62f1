import { isObject } from '../../../machines/protocol/codec/json.ts'
import type { Message } from '../../../machines/protocol/parts.ts'
import { NEGOTIATION_EXTENSION } from '../../../machines/protocol/uris.ts'
import { textOf } from '../../../runtime/authoring/words.ts'
import type { Observation } from '../../../runtime/contexts/observers.ts'
import { type Commit, type Erasure, isErased, type Scope, type TaskEvent } from '../../../runtime/store/store.ts'
import type { TaskRow } from '../feed.ts'
import { Recent } from './recent.ts'
import type { Redact } from './seen-step.ts'

/** The number of tasks kept, last changed first. */
export const KNOWN_TASKS = 10_000

/** The maximum length of a title. */
const LONGEST_TITLE = 80

/** Receives changes of tasks. */
export interface TaskListener {
  changed(row: TaskRow): void
  removed(taskId: string): void
}

interface IndexListener extends TaskListener {
  /** A task changed whose opening was not seen. */
  missing?(row: TaskRow): void
}

/** The row of a task, which changes in place, so that a commit costs little. */
type ChangingRow = { -readonly [Name in keyof TaskRow]: TaskRow[Name] }

/** The tasks of all contexts, from commits. A row that a listener gets changes in place later. */
export class TaskIndex {
  /** By id, the longest unchanged first, except tasks that were read from the store. */
  readonly #rows = new Recent<ChangingRow>(KNOWN_TASKS)
  /** Tasks from before the observation whose opening was not read yet. */
  readonly #unread = new Set<string>()
  readonly #redact: Redact
  /** The last message with a title: a context and its first task have the same one. */
  #titled: { readonly message?: Message; readonly words: string } = { words: '' }
  readonly #listener: IndexListener

  constructor(redact: Redact, listener: IndexListener) {
    this.#redact = redact
    this.#listener = listener
  }

  get(taskId: string): TaskRow | undefined {
    return this.#rows.get(taskId)
  }

  /** All tasks, last changed first. */
  get newest(): TaskRow[] {
    return this.#rows.values().toSorted((a, b) => b.changedMs - a.changedMs)
  }

  committed({ key: { tenant, principal, contextId }, atMs, tasks, log }: Commit): void {
    for (const { taskId, state, generation } of tasks) {
      const before = this.#rows.get(taskId)
      if (before) {
        before.state = state
        before.generation = generation
        before.changedMs = atMs
        this.#set(before)
        continue
      }
      const opening = log.find((entry): entry is { message: Message } => 'message' in entry && entry.taskId === taskId && entry.generation === 0)
      const first = log.find((entry): entry is TaskEvent => 'update' in entry && entry.taskId === taskId && entry.generation === 1)
      const title = opening ? this.title(opening.message, metadataOf(first)) : ''
      const row = { taskId, contextId, owner: { tenant, principal }, state, generation, openedMs: atMs, changedMs: atMs, title }
      this.#set(row)
      if (opening) continue
      this.#unread.add(taskId)
      this.#listener.missing?.(row)
    }
  }

  /** Adds a stored task. If it has changed since, only its opening is used. */
  read(row: TaskRow): void {
    const { taskId, openedMs, title } = row
    const known = this.#rows.get(taskId)
    if (known ? !this.#unread.delete(taskId) : this.#rows.size >= KNOWN_TASKS) return
    this.#set(known ? Object.assign(known, { openedMs, title }) : { ...row })
  }

  erased(whose: Erasure): void {
    for (const { taskId, owner, contextId } of this.#rows.values()) {
      if (!isErased(whose, { ...owner, contextId })) continue
      this.#rows.delete(taskId)
      this.#forget(taskId)
    }
  }

  /** The title of a task, from its opening message, and from the agreed terms in its metadata. */
  title(message: Message, metadata?: Readonly<Record<string, unknown>>): string {
    if (this.#titled.message !== message) this.#titled = { message, words: this.#words(message) }
    const { words } = this.#titled
    const terms = this.#terms(metadata?.[NEGOTIATION_EXTENSION])
    return terms === '' ? words : `${words}${words === '' ? '' : ' · '}${terms}`
  }

  #words(message: Message): string {
    const title = this.#redact(textOf(message).trimStart().slice(0, 2 * LONGEST_TITLE))
    return typeof title === 'string' ? title.slice(0, LONGEST_TITLE) : ''
  }

  #terms(agreed: unknown): string {
    const shown = this.#redact(isObject(agreed) ? agreed['terms'] : undefined)
    if (!isObject(shown)) return ''
    return Object.entries(shown).map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`).join(', ').slice(0, LONGEST_TITLE)
  }

  #set(row: ChangingRow): void {
    const displaced = this.#rows.set(row.taskId, row)
    this.#listener.changed(row)
    if (displaced) this.#forget(displaced.taskId)
  }

  #forget(taskId: string): void {
    this.#unread.delete(taskId)
    this.#listener.removed(taskId)
  }
}

/** The maximum number of tasks that are read per caller. */
export const EARLIER_TASKS = 1000

const PAGE = 100

/** When a stored task was opened, as far as the store has its first event, and its title. */
export async function openingOf(store: Observation['store'], { taskId, owner, openedMs }: TaskRow, title: TaskIndex['title']): Promise<Pick<TaskRow, 'openedMs' | 'title'>> {
  const [[first], [opening]] = await Promise.all([store.readEvents(owner, taskId, 0, 1), store.readTaskMessages(owner, taskId, 0, 1)])
  const update = first && 'statusUpdate' in first.update ? first.update.statusUpdate : undefined
  return { openedMs: update ? msOf(update.status.timestamp) : openedMs, title: opening ? title(opening.message, update?.metadata) : '' }
}

/** The stored tasks of some callers, for each caller last changed first. */
export async function* earlierTasks(store: Observation['store'], scopes: readonly Scope[], title: TaskIndex['title']): AsyncGenerator<TaskRow, void, undefined> {
  for (const { tenant, principal } of scopes) {
    const scope = { tenant, principal }
    let read = 0
    let page = await store.listTasks(scope, { limit: PAGE, artifacts: false })
    for (;;) {
      for (const { task: { id, contextId, status, metadata, history: [opening] = [] }, generation } of page.tasks) {
        const [first] = await store.readEvents(scope, id, 0, 1)
        const changedMs = msOf(status.timestamp)
        const openedMs = first && 'statusUpdate' in first.update ? msOf(first.update.statusUpdate.status.timestamp) : changedMs
        yield { taskId: id, contextId, owner: scope, state: status.state, generation, openedMs, changedMs, title: opening ? title(opening, metadata) : '' }
      }
      read += page.tasks.length
      if (!page.next || read >= EARLIER_TASKS) break
      page = await store.listTasks(scope, { limit: PAGE, artifacts: false, after: page.next })
    }
  }
}

function metadataOf(event: TaskEvent | undefined): Record<string, unknown> | undefined {
  return event && 'statusUpdate' in event.update ? event.update.statusUpdate.metadata : undefined
}

function msOf(timestamp = ''): number {
  return Date.parse(timestamp) || 0
}
