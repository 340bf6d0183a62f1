import { jsonBytes } from '../../primitives/json.ts'
import { fitsInto } from '../rows.ts'
import type { ReadOptions, Store, StoredTask } from '../store.ts'
import { takeLast, projectTask } from '../task-record.ts'
import { sizeOf, type LoggedTask } from './context.ts'
import { MemoryContexts } from './contexts.ts'
import { MemorySends } from './deduplication.ts'
import { latestFirst } from './status-index.ts'
import { MemoryTransitions } from './transitions.ts'

/** A task for a reader, without artifacts and history if it is large. */
function shown(task: LoggedTask, options: ReadOptions = {}, fits = fitsInto(options.within)): StoredTask {
  if (fits(task.bytes)) return projectTask(task, options)
  const messages = task.context.messages.filter(({ taskId }) => taskId === task.taskId).length
  return { ...projectTask(task, { historyLength: 0, artifacts: false }), large: { messages, bytes: task.bytes } }
}

/** The first rows, up to the one that reaches `bytes`. */
function upTo<Row>(rows: readonly Row[], bytes: number): Row[] {
  let left = bytes
  const end = rows.findIndex(row => (left -= jsonBytes(row)) <= 0)
  return rows.slice(0, end < 0 ? rows.length : end + 1)
}

/**
 * A store in memory: the default, and for tests. Its data is lost with the process.
 */
export function memoryStore(): Store {
  const contexts = new MemoryContexts()
  const { webhooks } = contexts
  const sends = new MemorySends()
  const transitions = new MemoryTransitions()
  let open = true

  const checkOpen = () => {
    if (!open) throw new TypeError('The store is closed.')
  }

  /** Runs a call synchronously, so in the order of the calls, and gives a promise, as slower engines do. */
  const call = async <T>(answer: () => T): Promise<T> => {
    checkOpen()
    return answer()
  }

  return {
    commit: async commit => {
      checkOpen()
      if (!contexts.write(commit)) return false
      for (const row of commit.sends) sends.add(commit.key, row)
      return true
    },
    loadContext: (key, bytes = Infinity) =>
      call(() => {
        const context = contexts.get(key)
        let left = bytes
        const tasks = context?.live.map(({ snapshot, ...others }) => {
          const row = { ...others, statusTime: contexts.task(key, others.taskId)?.status.timestamp ?? '' }
          if (snapshot.length > left) return { ...row, snapshotBytes: snapshot.length }
          left -= snapshot.length
          return { ...row, snapshot }
        })
        return context && tasks && { commit: context.commit, snapshot: context.snapshot, tasks }
      }),
    readSnapshot: (scope, taskId) =>
      call(() => contexts.task(scope, taskId)?.context.live.find(row => row.taskId === taskId)?.snapshot),
    readWakes: (limit, { atMs, taskId }) => call(() => contexts.wakes.read(limit, { atMs, id: taskId })),
    readTask: (scope, taskId, options) =>
      call(() => {
        const task = contexts.task(scope, taskId)
        return task && shown(task, options)
      }),
    readEvents: (scope, taskId, after, limit, bytes) =>
      call(() => {
        const log = contexts.task(scope, taskId)?.log.slice(after, after + limit) ?? []
        return bytes === undefined ? log : upTo(log, bytes)
      }),
    readTaskMessages: (scope, taskId, after, bytes) =>
      call(() => {
        const messages = contexts.task(scope, taskId)?.context.messages.filter(row => row.taskId === taskId) ?? []
        return upTo(messages.slice(after), bytes)
      }),
    readJournal: (scope, taskId) => call(() => contexts.task(scope, taskId)?.context.journalOf(taskId) ?? []),
    readMessages: (key, limit, { before, bytes = Infinity } = {}) =>
      call(() => {
        const messages = contexts.get(key)?.messages ?? []
        const end = before === undefined ? messages.length : messages.findIndex(({ taskId }) => taskId === before)
        const newest = takeLast(messages.slice(0, Math.max(0, end)), limit)
        return upTo(newest.toReversed(), bytes).toReversed()
      }),
    measureTasks: choice =>
      call(() => {
        if ('newest' in choice)
          return takeLast(contexts.get(choice)?.tasks ?? [], choice.newest)
            .toReversed()
            .map(sizeOf)
        const found = [...new Set(choice.taskIds)].flatMap(taskId => contexts.task(choice, taskId) ?? [])
        return found.toSorted(latestFirst).map(sizeOf)
      }),
    listTasks: (scope, query) =>
      call(() => {
        const page = contexts.orderFor(scope, query)?.page(query, ({ bytes }) => bytes)
        if (!page) return { tasks: [], total: 0 }
        const fits = fitsInto(query.within)
        return { ...page, tasks: page.tasks.map(task => shown(contexts.unfolded(task), query, fits)) }
      }),
    countOpen: whose => call(() => contexts.countOpen(whose)),
    countStates: () => call(() => ({ states: contexts.countStates() })),
    readSend: (scope, key) => call(() => sends.get(scope, key)),
    writeWebhook: (scope, webhook, limit) =>
      call(() => {
        const task = contexts.task(scope, webhook.taskId)
        if (!task) return 'absent'
        if (webhooks.othersOf(task, webhook.id) >= limit) return 'full'
        webhooks.write(task, webhook, task.generation)
        return 'written'
      }),
    readWebhooks: (scope, taskId) =>
      call(() => {
        const task = contexts.task(scope, taskId)
        return task ? webhooks.of(task) : []
      }),
    readOpenWebhooks: (limit, after) => call(() => webhooks.open(limit, after)),
    noteWebhooks: notes =>
      call(() =>
        notes.map(({ scope, taskId, id, progress }) => {
          const task = contexts.task(scope, taskId)
          return task !== undefined && webhooks.note(task, id, progress)
        })
      ),
    deleteWebhook: (scope, taskId, id) =>
      call(() => {
        const task = contexts.task(scope, taskId)
        return task !== undefined && webhooks.delete(task, id)
      }),
    sweep: ({ endedBeforeMs, idleBeforeMs, sendsBeforeMs }, limit) =>
      call(() => {
        transitions.sweep(endedBeforeMs)
        const tasks = contexts.sweepTasks(endedBeforeMs, limit)
        const swept = tasks + contexts.sweepContexts(idleBeforeMs, limit - tasks)
        return swept + sends.sweep(sendsBeforeMs, limit - swept)
      }),
    erase: whose =>
      call(() => {
        const hadSends = sends.erase(whose)
        return contexts.erase(whose) || hadSends
      }),
    countTransitions: (counts, atMs) => call(() => transitions.add(counts, atMs)),
    readTransitions: chart => call(() => transitions.of(chart)),
    close: async () => {
      open = false
    }
  }
}
