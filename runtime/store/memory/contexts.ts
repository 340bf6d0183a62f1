import type { TaskState } from '../../../machines/protocol/states.ts'
import {
  type NewWebhook,
  type StoredWebhook,
  sumVersions,
  type WebhookProgress,
  type WebhookRow,
  type Scope
} from '../rows.ts'
import {
  type Commit,
  type ContextKey,
  contextName,
  type Erasure,
  isSameScope,
  type OpenTasksFilter,
  type TaskQuery,
  type Wake
} from '../store.ts'
import { type LoggedTask, MemoryContext } from './context.ts'
import { StatusOrder, TimeIndex } from './indexes.ts'

/** LRU limit of waiting contexts that are not compressed. */
const UNFOLDED = 256

/** One scope in the memory store. */
interface MemoryScope {
  readonly scope: Scope
  readonly order: StatusOrder<LoggedTask>
  /** By id. */
  readonly contexts: Map<string, MemoryContext>
}

/** The contexts and tasks of the memory store, with indexes for lists, wakes and sweeps. */
export class MemoryContexts {
  readonly wakes = new TimeIndex<Wake>(
    ({ atMs }) => atMs,
    ({ taskId }) => taskId
  )
  readonly webhooks = new MemoryWebhooks()
  readonly #scopes = new ScopeMap<MemoryScope>()
  readonly #tasks = new Map<string, LoggedTask>()
  readonly #ended = new TimeIndex<LoggedTask>(
    ({ endedAtMs }) => endedAtMs,
    ({ taskId }) => taskId
  )
  /** Contexts without tasks. */
  readonly #idle = new TimeIndex<MemoryContext>(
    ({ atMs }) => atMs,
    ({ key }) => contextName(key)
  )
  /** Waiting contexts that are not compressed, least recently used first. */
  readonly #waiting = new Set<MemoryContext>()

  get(key: ContextKey): MemoryContext | undefined {
    const context = this.#find(key)
    return context && this.#used(context)
  }

  task(scope: Scope, taskId: string): LoggedTask | undefined {
    const task = this.#tasks.get(taskId)
    return task && isSameScope(scope, task.key) ? this.unfolded(task) : undefined
  }

  /** The task, after its context has been decompressed. */
  unfolded(task: LoggedTask): LoggedTask {
    this.#used(task.context)
    return task
  }

  /** The index for a query: of one context, or of the scope. */
  orderFor(scope: Scope, { contextId }: TaskQuery): StatusOrder<LoggedTask> | undefined {
    const known = this.#scopes.get(scope)
    return contextId === undefined ? known?.order : known?.contexts.get(contextId)?.order
  }

  /** Number of tasks that have not ended. */
  countOpen({ tenant, principal }: OpenTasksFilter): number {
    if (tenant !== undefined && principal !== undefined) return this.#scopes.get({ tenant, principal })?.order.open ?? 0
    let open = 0
    for (const { scope, order } of this.#scopes.values()) {
      if (scope.tenant === (tenant ?? scope.tenant) && scope.principal === (principal ?? scope.principal))
        open += order.open
    }
    return open
  }

  /** Number of open tasks by state. */
  countStates(): Partial<Record<TaskState, number>> {
    const counts: Partial<Record<TaskState, number>> = {}
    for (const { order } of this.#scopes.values()) order.countOpen(counts)
    return counts
  }

  /** Number of open tasks by version. */
  countVersions(): Record<string, number> {
    const contexts = [...this.#scopes.values()].flatMap(({ contexts }) => [...contexts.values()])
    return sumVersions(contexts.flatMap(({ live }) => live.map(({ snapshot }) => snapshot)))
  }

  /** Writes a commit. Writes nothing and gives `false` if it lost its race. */
  write(commit: Commit): boolean {
    const context = this.#find(commit.key)
    if ((context?.commit ?? 0) !== commit.expected) return false
    this.#writeTo(context ?? this.#newContext(commit.key), commit)
    return true
  }

  /** Deletes tasks that ended before a time, at most `limit`. Gives their number. */
  sweepTasks(beforeMs: number, limit: number): number {
    const swept = this.#ended.readBefore(limit, beforeMs)
    for (const task of swept) this.#dropTask(task)
    const gone = new Set(swept)
    for (const context of new Set(swept.map(({ context }) => context))) {
      this.#used(context).remove(gone)
      if (context.tasks.length === 0) this.#idle.add(context)
    }
    return swept.length
  }

  /** Deletes contexts without tasks whose newest commit was before a time, at most `limit`. Gives their number. */
  sweepContexts(beforeMs: number, limit: number): number {
    const swept = this.#idle.readBefore(limit, beforeMs)
    for (const context of swept) this.#dropContext(context)
    return swept.length
  }

  /** Deletes a context, or all of a scope. Gives whether there was one. */
  erase({ contextId, ...scope }: Erasure): boolean {
    const contexts = [...(this.#scopes.get(scope)?.contexts.values() ?? [])]
    const erased = contexts.filter(({ key }) => contextId === undefined || key.contextId === contextId)
    for (const context of erased) this.#dropContext(context)
    return erased.length > 0
  }

  #find(key: ContextKey): MemoryContext | undefined {
    return this.#scopes.get(key)?.contexts.get(key.contextId)
  }

  #newContext(key: ContextKey): MemoryContext {
    const known = this.#scopes.get(key)
    const scope: MemoryScope = known ?? { scope: key, order: new StatusOrder(), contexts: new Map() }
    if (!known) this.#scopes.set(key, scope)
    const context = new MemoryContext(key, scope.order)
    scope.contexts.set(key.contextId, context)
    return context
  }

  #writeTo(context: MemoryContext, commit: Commit): void {
    context.unfold()
    if (context.commit > 0 && context.tasks.length === 0) this.#dropIdle(context)
    this.#moveWakes(context, commit)
    for (const task of context.writeRows(commit, this.#tasks)) this.#tasks.set(task.taskId, task)
    for (const entry of commit.log)
      context.writeEntry(entry, entry.taskId === undefined ? undefined : this.#taskOf(context, entry.taskId))
    this.#moveEnds(context, commit)
    for (const { told: generation, ...webhook } of commit.webhooks) this.#writeWebhook(context, webhook, generation)
    if (context.tasks.length === 0) this.#idle.add(context)
    this.#used(context)
  }

  /** Moves the wakes of tasks to the times of their new rows. */
  #moveWakes({ key, live }: MemoryContext, { tasks }: Commit): void {
    for (const { taskId, wakeAtMs } of tasks) {
      const before = live.find(row => row.taskId === taskId)?.wakeAtMs
      if (before === wakeAtMs) continue
      if (before !== undefined) this.wakes.delete({ atMs: before, id: taskId })
      if (wakeAtMs !== undefined) this.wakes.add({ key, taskId, atMs: wakeAtMs })
    }
  }

  #writeWebhook(context: MemoryContext, webhook: NewWebhook, generation: number): void {
    const task = this.#tasks.get(webhook.taskId)
    if (task?.context === context) this.webhooks.write(task, webhook, generation)
  }

  #moveEnds(context: MemoryContext, { tasks, atMs }: Commit): void {
    for (const { taskId, snapshot, bytes = 0 } of tasks) {
      // The task exists, because its row has created it.
      const task = this.#taskOf(context, taskId) as LoggedTask
      this.#dropEnd(task)
      task.bytes = bytes
      if (snapshot !== undefined) continue
      task.endedAtMs = atMs
      this.#ended.add(task)
    }
  }

  /** The task of an id in a commit. It is mostly the newest of the context, which saves a lookup. */
  #taskOf({ tasks }: MemoryContext, taskId: string): LoggedTask | undefined {
    const newest = tasks.at(-1)
    return newest?.taskId === taskId ? newest : this.#tasks.get(taskId)
  }

  #dropEnd(task: LoggedTask): void {
    if (task.endedAtMs === Infinity) return
    this.#ended.delete({ atMs: task.endedAtMs, id: task.taskId })
    task.endedAtMs = Infinity
  }

  #dropIdle(context: MemoryContext): void {
    this.#idle.delete({ atMs: context.atMs, id: contextName(context.key) })
  }

  #dropTask(task: LoggedTask): void {
    this.#dropEnd(task)
    this.webhooks.drop(task)
    this.#tasks.delete(task.taskId)
  }

  #dropContext(context: MemoryContext): void {
    this.#used(context)
    for (const { taskId, wakeAtMs } of context.live)
      if (wakeAtMs !== undefined) this.wakes.delete({ atMs: wakeAtMs, id: taskId })
    for (const task of context.tasks) this.#dropTask(task)
    context.remove(new Set(context.tasks))
    this.#dropIdle(context)
    this.#waiting.delete(context)
    const contexts = this.#scopes.get(context.key)?.contexts
    contexts?.delete(context.key.contextId)
    if (contexts?.size === 0) this.#scopes.delete(context.key)
  }

  /** Decompresses a context for use, and marks it as the most recently used. */
  #used(context: MemoryContext): MemoryContext {
    context.unfold()
    this.#waiting.delete(context)
    if (context.isWaiting) this.#waiting.add(context)
    for (const other of this.#waiting) {
      if (this.#waiting.size <= UNFOLDED) break
      this.#waiting.delete(other)
      other.fold()
    }
    return context
  }
}

/** Map by scope, without a string key for each scope. */
class ScopeMap<Value> {
  readonly #tenants = new Map<string, Map<string, Value>>()

  get({ tenant, principal }: Scope): Value | undefined {
    return this.#tenants.get(tenant)?.get(principal)
  }

  set({ tenant, principal }: Scope, value: Value): void {
    const principals = this.#tenants.get(tenant) ?? new Map<string, Value>()
    this.#tenants.set(tenant, principals.set(principal, value))
  }

  delete({ tenant, principal }: Scope): void {
    const principals = this.#tenants.get(tenant)
    if (principals?.delete(principal) && principals.size === 0) this.#tenants.delete(tenant)
  }

  *values(): Iterable<Value> {
    for (const principals of this.#tenants.values()) yield* principals.values()
  }
}

interface Kept {
  readonly place: number
  readonly task: LoggedTask
  row: WebhookRow
}

/** The webhooks of the memory store, by task and id, with an index of active ones by place. */
class MemoryWebhooks {
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

  /** Writes a webhook that continues after `generation`, or at the position of the one that it replaces. */
  write(task: LoggedTask, { taskId, id, webhook, version }: NewWebhook, generation: number): void {
    const webhooks = this.#tasks.get(task) ?? new Map<string, Kept>()
    const before = webhooks.get(id)
    const row = { taskId, id, webhook, version, progress: { told: before?.row.progress.told ?? generation, tries: 0 } }
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
