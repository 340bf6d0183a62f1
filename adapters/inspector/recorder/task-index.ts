import type { Message } from '../../../machines/protocol/objects.ts'
import { NEGOTIATION_EXTENSION } from '../../../machines/protocol/uris.ts'
import type { Scope } from '../../../runtime/store/rows.ts'
import {
  type Commit,
  type ContextKey,
  type Erasure,
  isErased,
  isOpeningMessage,
  type TaskEvent
} from '../../../runtime/store/store.ts'
import type { Observation } from '../../../runtime/telemetry-port.ts'
import type { InspectedTask } from '../feed.ts'
import { type Kept, Recent, shownTitle, wordsOf } from './recent.ts'
import type { Redact } from './seen-step.ts'

/** The number of tasks kept, last changed first. */
export const KNOWN_TASKS = 10_000

/** A listed task, which changes in place. Its row is made when a page gets it. */
export interface IndexedTask extends Kept {
  readonly taskId: string
  readonly key: ContextKey
  state: InspectedTask['state']
  generation: number
  openedMs: number
  changedMs: number
  /** The words of its opening message. */
  words: string
  /** The agreement in its metadata, if any. */
  agreed: unknown
  /** Made of the words and the agreement when a page first gets its row. */
  title: string | undefined
  /** Whether it is from before the observation, and its opening was not read yet. */
  isUnread: boolean
}

/** A stored task. */
export interface TaskFacts extends Pick<IndexedTask, 'openedMs' | 'words' | 'agreed'> {
  readonly taskId: string
  readonly key: ContextKey
  readonly state: InspectedTask['state']
  readonly generation: number
  readonly changedMs: number
}

/** Receives changes of tasks. */
export interface TaskListener {
  changed(task: IndexedTask): void
  removed(task: IndexedTask): void
}

interface IndexListener extends TaskListener {
  /** A task changed whose opening was not seen. */
  missing?(task: IndexedTask): void
}

/** The tasks of all contexts, from commits. */
export class TaskIndex {
  /** By id. */
  readonly #tasks = new Recent<IndexedTask>(KNOWN_TASKS)
  readonly #redact: Redact
  readonly #listener: IndexListener

  constructor(redact: Redact, listener: IndexListener) {
    this.#redact = redact
    this.#listener = listener
  }

  get(taskId: string): IndexedTask | undefined {
    return this.#tasks.get(taskId)
  }

  /** All tasks, last changed first. */
  get newest(): IndexedTask[] {
    return this.#tasks.values().toSorted((a, b) => b.changedMs - a.changedMs)
  }

  /** Whether all tasks of a commit are listed. */
  hasAll({ tasks }: Commit): boolean {
    for (const { taskId } of tasks) if (!this.#tasks.has(taskId)) return false
    return true
  }

  committed(commit: Commit): void {
    for (const { taskId, state, generation } of commit.tasks) {
      const known = this.#tasks.get(taskId)
      if (known) {
        known.state = state
        known.generation = generation
        known.changedMs = commit.atMs
        known.isChanged = true
        this.#listener.changed(known)
      } else this.#list(taskId, state, generation, commit)
    }
  }

  /** Adds a stored task. If it has changed since, only its opening is used. */
  read({ taskId, key, state, generation, openedMs, changedMs, words, agreed }: TaskFacts): void {
    const known = this.#tasks.get(taskId)
    if (known?.isUnread) {
      Object.assign(known, { openedMs, words, agreed, title: undefined, isUnread: false })
      this.#listener.changed(known)
    } else if (!known && this.#tasks.size < KNOWN_TASKS)
      this.#add({
        taskId,
        key,
        state,
        generation,
        openedMs,
        changedMs,
        words,
        agreed,
        title: undefined,
        isUnread: false,
        isChanged: false
      })
  }

  erased(whose: Erasure): void {
    for (const task of this.#tasks.values()) {
      if (!isErased(whose, task.key)) continue
      this.#tasks.delete(task.taskId)
      this.#listener.removed(task)
    }
  }

  /** A task for pages. */
  rowOf(task: IndexedTask): InspectedTask {
    const {
      taskId,
      key: { tenant, principal, contextId },
      state,
      generation,
      openedMs,
      changedMs,
      words,
      agreed
    } = task
    task.title ??= shownTitle(words, agreed, this.#redact)
    return {
      taskId,
      contextId,
      owner: { tenant, principal },
      state,
      generation,
      openedMs,
      changedMs,
      title: task.title
    }
  }

  #list(taskId: string, state: InspectedTask['state'], generation: number, { key, atMs, log }: Commit): void {
    let opening: Message | undefined
    let first: TaskEvent | undefined
    for (const entry of log.filter(entry => entry.taskId === taskId)) {
      if ('message' in entry) {
        if (isOpeningMessage(entry)) opening ??= entry.message
      } else first ??= entry
    }
    const words = opening ? wordsOf(opening) : ''
    const task: IndexedTask = {
      taskId,
      key,
      state,
      generation,
      openedMs: atMs,
      changedMs: atMs,
      words,
      agreed: opening && agreedIn(first),
      title: undefined,
      isUnread: !opening,
      isChanged: false
    }
    this.#add(task)
    if (!opening) this.#listener.missing?.(task)
  }

  #add(task: IndexedTask): void {
    const displaced = this.#tasks.add(task.taskId, task)
    this.#listener.changed(task)
    if (displaced) this.#listener.removed(displaced)
  }
}

/** The agreement in the metadata of a task. */
function agreedOf(metadata: Readonly<Record<string, unknown>> | undefined): unknown {
  return metadata?.[NEGOTIATION_EXTENSION]
}

/** The agreement in the metadata of a task's first event. */
function agreedIn(first: TaskEvent | undefined): unknown {
  return agreedOf(first && 'statusUpdate' in first.update ? first.update.statusUpdate.metadata : undefined)
}

/** The maximum number of tasks that are read per caller. */
export const EARLIER_TASKS = 1000

const PAGE = 100

/** When a stored task was opened, as far as the store has its first event, and its opening. */
export async function openingOf(
  store: Observation['store'],
  { taskId, key, openedMs }: IndexedTask
): Promise<Pick<TaskFacts, 'openedMs' | 'words' | 'agreed'>> {
  const [[first], [opening]] = await Promise.all([
    store.readEvents(key, taskId, 0, 1),
    store.readTaskMessages(key, taskId, 0, 1)
  ])
  return {
    openedMs: openingTimeMs(first) ?? openedMs,
    words: opening ? wordsOf(opening.message) : '',
    agreed: agreedIn(first)
  }
}

/** The stored tasks of some callers, for each caller last changed first. */
export async function* earlierTasks(
  store: Observation['store'],
  scopes: readonly Scope[]
): AsyncGenerator<TaskFacts, void, undefined> {
  for (const { tenant, principal } of scopes) {
    const scope = { tenant, principal }
    let read = 0
    let page = await store.listTasks(scope, { limit: PAGE, artifacts: false })
    for (;;) {
      for (const {
        task: { id, contextId, status, metadata, history: [opening] = [] },
        generation
      } of page.tasks) {
        const [first] = await store.readEvents(scope, id, 0, 1)
        const changedMs = msOf(status.timestamp)
        yield {
          taskId: id,
          key: { ...scope, contextId },
          state: status.state,
          generation,
          openedMs: openingTimeMs(first) ?? changedMs,
          changedMs,
          words: opening ? wordsOf(opening) : '',
          agreed: opening && agreedOf(metadata)
        }
      }
      read += page.tasks.length
      if (!page.next || read >= EARLIER_TASKS) break
      page = await store.listTasks(scope, { limit: PAGE, artifacts: false, after: page.next })
    }
  }
}

/** When a task was opened, by its first event. */
function openingTimeMs(first: TaskEvent | undefined): number | undefined {
  return first && 'statusUpdate' in first.update ? msOf(first.update.statusUpdate.status.timestamp) : undefined
}

function msOf(timestamp = ''): number {
  return Date.parse(timestamp) || 0
}
