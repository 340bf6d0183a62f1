import { MemoryContext, type LoggedTask } from './memory-context.ts'
import { newest } from './newest.ts'
import type { SendRow } from './sends.ts'
import { StatusOrder } from './status-order.ts'
import { contextName, type Commit, type ContextKey, type Scope, type Store, type TaskQuery } from './store.ts'
import { projectTask } from './task-projection.ts'
import { WakeIndex } from './wake-index.ts'

/** How many contexts that wait are kept as they are; those that have waited longer are folded. */
const UNFOLDED = 256

/**
 * A store in this process's memory: the default, and for tests. Whole while the process lives, gone with it.
 */
export function memoryStore(): Store {
  const contexts = new Map<string, MemoryContext>()
  const tasks = new Map<string, LoggedTask>()
  const orders = new Map<string, StatusOrder<LoggedTask>>()
  const sends = new Map<string, SendRow>()
  const wakes = new WakeIndex()
  /** Contexts that wait and are not folded, the longest unused first. */
  const waiting = new Set<MemoryContext>()
  let open = true

  /** Unfolds a context for use; if it waits, it is the last to be folded again. */
  const used = (context: MemoryContext) => {
    context.unfold()
    waiting.delete(context)
    if (context.isWaiting) waiting.add(context)
    for (const other of waiting) {
      if (waiting.size <= UNFOLDED) break
      waiting.delete(other)
      other.fold()
    }
    return context
  }

  const contextOf = (key: ContextKey) => {
    const context = contexts.get(contextName(key))
    return context && used(context)
  }

  const unfolded = (task: LoggedTask) => {
    used(task.context)
    return task
  }

  const orderOf = (scope: Scope) => {
    const name = nameOfScope(scope)
    const order = orders.get(name) ?? new StatusOrder<LoggedTask>()
    orders.set(name, order)
    return order
  }

  const ownTask = (scope: Scope, taskId: string) => {
    const task = tasks.get(taskId)
    return task && task.key.tenant === scope.tenant && task.key.principal === scope.principal ? unfolded(task) : undefined
  }

  const write = (context: MemoryContext, commit: Commit) => {
    moveWakes(wakes, context, commit)
    for (const task of context.writeRows(commit, taskId => tasks.has(taskId))) tasks.set(task.taskId, task)
    for (const entry of commit.log) context.writeEntry(entry, entry.taskId === undefined ? undefined : tasks.get(entry.taskId))
    for (const row of commit.sends) remember(sends, nameOfSend(commit.key, row.key), row)
  }

  /** The tasks that a query is about, but for its state and time. */
  const orderFor = (scope: Scope, { contextId }: TaskQuery) => {
    return contextId === undefined ? orders.get(nameOfScope(scope)) : contexts.get(contextName({ ...scope, contextId }))?.order
  }

  /** Runs a call now, in the order of the calls, and answers with a promise as slower engines do. */
  const call = async <T>(answer: () => T): Promise<T> => {
    if (!open) throw new TypeError('The store is closed.')
    return answer()
  }

  return {
    commit: commit => call(() => {
      const context = contextOf(commit.key) ?? new MemoryContext(commit.key, orderOf(commit.key))
      if (context.commit !== commit.expected) return false
      contexts.set(contextName(commit.key), context)
      write(context, commit)
      used(context)
      return true
    }),
    loadContext: key => call(() => {
      const context = contextOf(key)
      return context && { commit: context.commit, snapshot: context.snapshot, tasks: [...context.live] }
    }),
    readWakes: (limit, after) => call(() => wakes.read(limit, after)),
    readTask: (scope, taskId, options) => call(() => {
      const task = ownTask(scope, taskId)
      return task && projectTask(task, options)
    }),
    readEvents: (scope, taskId, after, limit) => call(() => ownTask(scope, taskId)?.log.slice(after, after + limit) ?? []),
    readJournal: (scope, taskId) => call(() => ownTask(scope, taskId)?.context.journalOf(taskId) ?? []),
    readMessages: (key, limit) => call(() => newest(contextOf(key)?.messages ?? [], limit)),
    readTasks: (key, limit) => call(() => {
      const tasks = newest(contextOf(key)?.tasks ?? [], limit)
      return tasks.toReversed().map(task => projectTask(task, { historyLength: 0 }))
    }),
    listTasks: (scope, query) => call(() => {
      const page = orderFor(scope, query)?.page(query)
      return page ? { ...page, tasks: page.tasks.map(task => projectTask(unfolded(task), query)) } : { tasks: [], total: 0 }
    }),
    readSend: (scope, key) => call(() => sends.get(nameOfSend(scope, key))),
    close: async () => {
      open = false
    }
  }
}

/** Puts the wakes of tasks where their new rows have them. */
function moveWakes(wakes: WakeIndex, { key, live }: MemoryContext, { tasks }: Commit): void {
  for (const { taskId, wakeAtMs } of tasks) {
    const before = live.find(row => row.taskId === taskId)?.wakeAtMs
    if (before === wakeAtMs) continue
    if (before !== undefined) wakes.delete({ atMs: before, taskId })
    if (wakeAtMs !== undefined) wakes.add({ key, taskId, atMs: wakeAtMs })
  }
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
