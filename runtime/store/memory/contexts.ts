import type { NewWebhook } from '../rows.ts'
import { contextName, isSameScope, type Commit, type ContextKey, type Erasure, type OpenTasksFilter, type Scope, type TaskQuery, type Wake } from '../store.ts'
import { MemoryContext, type LoggedTask } from './context.ts'
import { StatusOrder } from './status-index.ts'
import { TimeIndex } from './time-index.ts'
import { MemoryWebhooks } from './webhooks.ts'

/** How many contexts that wait are kept as they are; those that have waited longer are folded. */
const UNFOLDED = 256

/** What the memory store holds of one scope. */
interface MemoryScope {
  readonly scope: Scope
  readonly order: StatusOrder<LoggedTask>
  /** By their ids. */
  readonly contexts: Map<string, MemoryContext>
}

/** The contexts and tasks of the memory store, with the orders in which they are listed, woken and swept. */
export class MemoryContexts {
  readonly wakes = new TimeIndex<Wake>(({ atMs }) => atMs, ({ taskId }) => taskId)
  readonly webhooks = new MemoryWebhooks()
  readonly #scopes = new ScopeMap<MemoryScope>()
  readonly #tasks = new Map<string, LoggedTask>()
  readonly #ended = new TimeIndex<LoggedTask>(({ endedAtMs }) => endedAtMs, ({ taskId }) => taskId)
  /** Contexts that have no tasks. */
  readonly #idle = new TimeIndex<MemoryContext>(({ atMs }) => atMs, ({ key }) => contextName(key))
  /** Contexts that wait and are not folded, the longest unused first. */
  readonly #waiting = new Set<MemoryContext>()

  get(key: ContextKey): MemoryContext | undefined {
    const context = this.#find(key)
    return context && this.#used(context)
  }

  task(scope: Scope, taskId: string): LoggedTask | undefined {
    const task = this.#tasks.get(taskId)
    return task && isSameScope(scope, task.key) ? this.unfolded(task) : undefined
  }

  /** The task with all that it holds. */
  unfolded(task: LoggedTask): LoggedTask {
    this.#used(task.context)
    return task
  }

  /** The tasks that a query is about, but for its state and time. */
  orderFor(scope: Scope, { contextId }: TaskQuery): StatusOrder<LoggedTask> | undefined {
    const known = this.#scopes.get(scope)
    return contextId === undefined ? known?.order : known?.contexts.get(contextId)?.order
  }

  /** How many tasks have not ended. */
  countOpen({ tenant, principal }: OpenTasksFilter): number {
    if (tenant !== undefined && principal !== undefined) return this.#scopes.get({ tenant, principal })?.order.open ?? 0
    let open = 0
    for (const { scope, order } of this.#scopes.values()) {
      if (scope.tenant === (tenant ?? scope.tenant) && scope.principal === (principal ?? scope.principal)) open += order.open
    }
    return open
  }

  /** Writes a commit; nothing of one that lost its race, to which the answer is `false`. */
  write(commit: Commit): boolean {
    const context = this.#find(commit.key)
    if ((context?.commit ?? 0) !== commit.expected) return false
    this.#writeTo(context ?? this.#newContext(commit.key), commit)
    return true
  }

  /** Removes tasks that ended before a time, at most `limit`. Gives how many went. */
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

  /** Removes contexts without tasks whose newest commit was before a time, at most `limit`. Gives how many went. */
  sweepContexts(beforeMs: number, limit: number): number {
    const swept = this.#idle.readBefore(limit, beforeMs)
    for (const context of swept) this.#dropContext(context)
    return swept.length
  }

  /** Removes a context, or all of a scope. Answers whether there was one. */
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
    for (const task of context.writeRows(commit, taskId => this.#tasks.has(taskId))) this.#tasks.set(task.taskId, task)
    for (const entry of commit.log) context.writeEntry(entry, entry.taskId === undefined ? undefined : this.#taskOf(context, entry.taskId))
    this.#moveEnds(context, commit)
    for (const { told, ...webhook } of commit.webhooks) this.#writeWebhook(context, webhook, told)
    if (context.tasks.length === 0) this.#idle.add(context)
    this.#used(context)
  }

  /** Puts the wakes of tasks where their new rows have them. */
  #moveWakes({ key, live }: MemoryContext, { tasks }: Commit): void {
    for (const { taskId, wakeAtMs } of tasks) {
      const before = live.find(row => row.taskId === taskId)?.wakeAtMs
      if (before === wakeAtMs) continue
      if (before !== undefined) this.wakes.delete({ atMs: before, id: taskId })
      if (wakeAtMs !== undefined) this.wakes.add({ key, taskId, atMs: wakeAtMs })
    }
  }

  #writeWebhook(context: MemoryContext, webhook: NewWebhook, told: number): void {
    const task = this.#tasks.get(webhook.taskId)
    if (task?.context === context) this.webhooks.write(task, webhook, told)
  }

  #moveEnds(context: MemoryContext, { tasks, atMs }: Commit): void {
    for (const { taskId, snapshot, bytes = 0 } of tasks) {
      // Its row has made it, if it was not there.
      const task = this.#taskOf(context, taskId) as LoggedTask
      this.#dropEnd(task)
      task.bytes = bytes
      if (snapshot !== undefined) continue
      task.endedAtMs = atMs
      this.#ended.add(task)
    }
  }

  /** The task of an id that a context's commit names: its newest mostly, and among all of them one has to search. */
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
    for (const { taskId, wakeAtMs } of context.live) if (wakeAtMs !== undefined) this.wakes.delete({ atMs: wakeAtMs, id: taskId })
    for (const task of context.tasks) this.#dropTask(task)
    context.remove(new Set(context.tasks))
    this.#dropIdle(context)
    this.#waiting.delete(context)
    const contexts = this.#scopes.get(context.key)?.contexts
    contexts?.delete(context.key.contextId)
    if (contexts?.size === 0) this.#scopes.delete(context.key)
  }

  /** Unfolds a context for use; if it waits, it is the last to be folded again. */
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

/** Values by scope, without a text that would stand for each scope. */
export class ScopeMap<Value> {
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
