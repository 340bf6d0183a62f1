import { newest } from './newest.ts'
import type { SendRow } from './sends.ts'
import { contextName, type Commit, type ContextKey, type MessageRow, type Scope, type Store, type TaskEvent, type TaskRow } from './store.ts'
import { applyEvent, applyMessage, newTaskRecord, projectTask, type TaskRecord } from './task-projection.ts'

interface ContextRecord {
  readonly key: ContextKey
  commit: number
  snapshot: string
  readonly live: Map<string, TaskRow & { snapshot: string }>
  /** Every task of the context, oldest first. */
  readonly tasks: LoggedTask[]
  readonly messages: MessageRow[]
}

type LoggedTask = TaskRecord & { readonly log: TaskEvent[] }

/**
 * A store in this process's memory: the default, and for tests. Whole while the process lives, gone with it.
 */
export function memoryStore(): Store {
  const contexts = new Map<string, ContextRecord>()
  const tasks = new Map<string, LoggedTask>()
  const sends = new Map<string, SendRow>()
  let open = true

  const ownTask = (scope: Scope, taskId: string) => {
    const task = tasks.get(taskId)
    return task && task.key.tenant === scope.tenant && task.key.principal === scope.principal ? task : undefined
  }

  /** Runs a call now, in the order of the calls, and answers with a promise as slower engines do. */
  const call = async <T>(answer: () => T): Promise<T> => {
    if (!open) throw new TypeError('The store is closed.')
    return answer()
  }

  return {
    commit: commit => call(() => {
      const context = contexts.get(contextName(commit.key)) ?? newContext(commit.key)
      if (context.commit !== commit.expected) return false
      contexts.set(contextName(commit.key), context)
      write(context, commit, tasks)
      for (const row of commit.sends) remember(sends, nameOfSend(commit.key, row.key), row)
      return true
    }),
    loadContext: key => call(() => {
      const context = contexts.get(contextName(key))
      return context && { commit: context.commit, snapshot: context.snapshot, tasks: [...context.live.values()] }
    }),
    unfinishedContexts: () => call(() => [...contexts.values()].filter(({ live }) => live.size > 0).map(({ key }) => key)),
    readTask: (scope, taskId, options) => call(() => {
      const task = ownTask(scope, taskId)
      return task && projectTask(task, options)
    }),
    readEvents: (scope, taskId, after, limit) => call(() => ownTask(scope, taskId)?.log.slice(after, after + limit) ?? []),
    readMessages: (key, limit) => call(() => newest(contexts.get(contextName(key))?.messages ?? [], limit)),
    readTasks: (key, limit) => call(() => {
      const tasks = newest(contexts.get(contextName(key))?.tasks ?? [], limit)
      return tasks.toReversed().map(task => projectTask(task, { historyLength: 0 }))
    }),
    readSend: (scope, key) => call(() => sends.get(nameOfSend(scope, key))),
    close: async () => {
      open = false
    }
  }
}

function write(context: ContextRecord, commit: Commit, tasks: Map<string, LoggedTask>): void {
  context.commit += 1
  context.snapshot = commit.snapshot
  for (const row of commit.tasks) {
    const { taskId, snapshot } = row
    if (!tasks.has(taskId)) {
      const task = { ...newTaskRecord(commit.key, taskId), log: [] }
      tasks.set(taskId, task)
      context.tasks.push(task)
    }
    if (snapshot === undefined) context.live.delete(taskId)
    else context.live.set(taskId, { ...row, snapshot })
  }
  for (const entry of commit.log) {
    const task = entry.taskId === undefined ? undefined : tasks.get(entry.taskId)
    if ('message' in entry) {
      context.messages.push(entry)
      if (task) applyMessage(task, entry)
    } else if (task) {
      task.log.push(entry)
      applyEvent(task, entry)
    }
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

function newContext(key: ContextKey): ContextRecord {
  return { key, commit: 0, snapshot: '', live: new Map(), tasks: [], messages: [] }
}

function nameOfSend({ tenant, principal }: Scope, key: string): string {
  return JSON.stringify([tenant, principal, key])
}
