import { newest } from './newest.ts'
import type { SendRow } from './sends.ts'
import { StatusOrder } from './status-order.ts'
import { contextName, type Commit, type ContextKey, type JournalRow, type MessageRow, type Scope, type Store, type TaskEvent, type TaskQuery, type TaskRow } from './store.ts'
import { WakeIndex } from './wake-index.ts'
import { applyEvent, applyMessage, newTaskRecord, projectTask, type TaskRecord } from './task-projection.ts'

interface ContextRecord {
  readonly key: ContextKey
  commit: number
  snapshot: string
  readonly live: Map<string, TaskRow & { snapshot: string }>
  /** What the works of live tasks keep, by task and key. */
  readonly journals: Map<string, Map<string, JournalRow>>
  /** Every task of the context, oldest first. */
  readonly tasks: LoggedTask[]
  readonly messages: MessageRow[]
  /** The tasks of the whole scope, in the order of their status times. */
  readonly scopeOrder: StatusOrder
  /** Those of this context, from when they are first listed. */
  order?: StatusOrder
}

type LoggedTask = TaskRecord & { readonly log: TaskEvent[] }

/**
 * A store in this process's memory: the default, and for tests. Whole while the process lives, gone with it.
 */
export function memoryStore(): Store {
  const contexts = new Map<string, ContextRecord>()
  const tasks = new Map<string, LoggedTask>()
  const orders = new Map<string, StatusOrder>()
  const sends = new Map<string, SendRow>()
  const wakes = new WakeIndex()
  let open = true

  const ownTask = (scope: Scope, taskId: string) => {
    const task = tasks.get(taskId)
    return task && task.key.tenant === scope.tenant && task.key.principal === scope.principal ? task : undefined
  }

  /** The tasks that a query is about, but for its state and time. */
  const orderFor = (scope: Scope, { contextId }: TaskQuery) => {
    if (contextId === undefined) return orders.get(nameOfScope(scope))
    const context = contexts.get(contextName({ ...scope, contextId }))
    return context && ownOrder(context)
  }

  /** Runs a call now, in the order of the calls, and answers with a promise as slower engines do. */
  const call = async <T>(answer: () => T): Promise<T> => {
    if (!open) throw new TypeError('The store is closed.')
    return answer()
  }

  return {
    commit: commit => call(() => {
      const known = contexts.get(contextName(commit.key))
      const context = known ?? newContext(commit.key, orders.get(nameOfScope(commit.key)))
      if (context.commit !== commit.expected) return false
      if (!known) {
        contexts.set(contextName(commit.key), context)
        orders.set(nameOfScope(commit.key), context.scopeOrder)
      }
      write(context, commit, tasks, wakes)
      for (const row of commit.sends) remember(sends, nameOfSend(commit.key, row.key), row)
      return true
    }),
    loadContext: key => call(() => {
      const context = contexts.get(contextName(key))
      return context && { commit: context.commit, snapshot: context.snapshot, tasks: [...context.live.values()] }
    }),
    readWakes: (limit, after) => call(() => wakes.read(limit, after)),
    readTask: (scope, taskId, options) => call(() => {
      const task = ownTask(scope, taskId)
      return task && projectTask(task, options)
    }),
    readEvents: (scope, taskId, after, limit) => call(() => ownTask(scope, taskId)?.log.slice(after, after + limit) ?? []),
    readJournal: (scope, taskId) => call(() => {
      const task = ownTask(scope, taskId)
      const journal = task && contexts.get(contextName(task.key))?.journals.get(taskId)
      return [...(journal?.values() ?? [])]
    }),
    readMessages: (key, limit) => call(() => newest(contexts.get(contextName(key))?.messages ?? [], limit)),
    readTasks: (key, limit) => call(() => {
      const tasks = newest(contexts.get(contextName(key))?.tasks ?? [], limit)
      return tasks.toReversed().map(task => projectTask(task, { historyLength: 0 }))
    }),
    listTasks: (scope, query) => call(() => {
      const page = orderFor(scope, query)?.page(query)
      return page ? { ...page, tasks: page.tasks.map(task => projectTask(task, query)) } : { tasks: [], total: 0 }
    }),
    readSend: (scope, key) => call(() => sends.get(nameOfSend(scope, key))),
    close: async () => {
      open = false
    }
  }
}

function write(context: ContextRecord, commit: Commit, tasks: Map<string, LoggedTask>, wakes: WakeIndex): void {
  context.commit += 1
  context.snapshot = commit.snapshot
  for (const { taskId, snapshot, ...row } of commit.tasks) {
    if (!tasks.has(taskId)) {
      const task = { ...newTaskRecord(commit.key, taskId), log: [] }
      tasks.set(taskId, task)
      context.tasks.push(task)
    }
    moveWake(wakes, context, taskId, row.wakeAtMs)
    if (snapshot === undefined) {
      context.live.delete(taskId)
      context.journals.delete(taskId)
    } else context.live.set(taskId, { taskId, snapshot, ...row })
  }
  for (const row of commit.journal) {
    if (!context.live.has(row.taskId)) continue
    const journal = context.journals.get(row.taskId) ?? new Map<string, JournalRow>()
    context.journals.set(row.taskId, journal.set(row.key, row))
  }
  for (const entry of commit.log) {
    const task = entry.taskId === undefined ? undefined : tasks.get(entry.taskId)
    if ('message' in entry) {
      context.messages.push(entry)
      if (task) applyMessage(task, entry)
    } else if (task) {
      logEvent(context, task, entry)
    }
  }
}

function newContext(key: ContextKey, scopeOrder = new StatusOrder()): ContextRecord {
  return { key, commit: 0, snapshot: '', live: new Map(), journals: new Map(), tasks: [], messages: [], scopeOrder }
}

function ownOrder(context: ContextRecord): StatusOrder {
  if (context.order) return context.order
  context.order = new StatusOrder()
  for (const task of context.tasks) context.order.add(task)
  return context.order
}

/** Adds an event to its task, which has its place in the orders from its first event on. */
function logEvent({ scopeOrder, order }: ContextRecord, task: LoggedTask, event: TaskEvent): void {
  if ('artifactUpdate' in event.update) {
    task.log.push(event)
    return applyEvent(task, event)
  }
  scopeOrder.remove(task)
  order?.remove(task)
  task.log.push(event)
  applyEvent(task, event)
  scopeOrder.add(task)
  order?.add(task)
}

/** Puts a task's wake where its new row has it. */
function moveWake(wakes: WakeIndex, { key, live }: ContextRecord, taskId: string, atMs: number | undefined): void {
  const before = live.get(taskId)?.wakeAtMs
  if (before === atMs) return
  if (before !== undefined) wakes.delete({ atMs: before, taskId })
  if (atMs !== undefined) wakes.add({ key, taskId, atMs })
}

/** Adds a row, oldest first, and drops those that have expired by then. */
function remember(sends: Map<string, SendRow>, name: string, row: SendRow): void {
  for (const [oldName, { expiresAtMs }] of sends) {
    if (expiresAtMs > row.atMs) break
    sends.delete(oldName)
  }
  sends.set(name, row)
}

function nameOfScope({ tenant, principal }: Scope): string {
  return JSON.stringify([tenant, principal])
}

function nameOfSend({ tenant, principal }: Scope, key: string): string {
  return JSON.stringify([tenant, principal, key])
}
