import { jsonBytes } from '../../primitives/json.ts'
import type { TransitionCount } from '../../xstate/transition-counter.ts'
import { fitsInto, type SendRow, sumTransitionCounts, type Scope } from '../rows.ts'
import {
  type ContextKey,
  contextName,
  type Erasure,
  isErased,
  type ReadOptions,
  type Store,
  type StoredTask
} from '../store.ts'
import { indexAfter, projectTask, takeLast } from '../task-record.ts'
import { type LoggedTask, taskSizeOf } from './context.ts'
import { MemoryContexts } from './contexts.ts'
import { latestFirst, TimeIndex } from './indexes.ts'

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
  const definitions = new Map<string, string>()
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
          const snapshotBytes = Buffer.byteLength(snapshot)
          if (snapshotBytes > left) return { ...row, snapshotBytes }
          left -= snapshotBytes
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
        const all = contexts.task(scope, taskId)?.log ?? []
        const from = indexAfter(all, after)
        const log = all.slice(from, from + limit)
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
            .map(taskSizeOf)
        const found = [...new Set(choice.taskIds)].flatMap(taskId => contexts.task(choice, taskId) ?? [])
        return found.toSorted(latestFirst).map(taskSizeOf)
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
    countVersions: () => call(() => ({ versions: contexts.countVersions() })),
    writeDefinition: (digest, text) => call(() => void definitions.set(digest, text)),
    readDefinition: digest => call(() => definitions.get(digest)),
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

interface Kept {
  readonly name: string
  readonly key: ContextKey
  readonly row: SendRow
}

/** The deduplication rows of the memory store, by scope and key, with an index by expiry. */
export class MemorySends {
  readonly #rows = new Map<string, Kept>()
  readonly #expiries = new TimeIndex<Kept>(
    ({ row }) => row.expiresAtMs,
    ({ name }) => name
  )

  /** Adds a row of a context. It replaces one with the same key. */
  add(key: ContextKey, row: SendRow): void {
    const name = nameOf(key, row.key)
    const before = this.#rows.get(name)
    if (before) this.#drop(before)
    const kept = { name, key, row }
    this.#rows.set(name, kept)
    this.#expiries.add(kept)
  }

  get(scope: Scope, key: string): SendRow | undefined {
    return this.#rows.get(nameOf(scope, key))?.row
  }

  /** Deletes rows that expired before a time, at most `limit`. Gives their number. */
  sweep(beforeMs: number, limit: number): number {
    const expired = this.#expiries.readBefore(limit, beforeMs)
    for (const kept of expired) this.#drop(kept)
    return expired.length
  }

  /** Deletes the rows of a context or scope. Gives whether there were any. */
  erase(whose: Erasure): boolean {
    const before = this.#rows.size
    for (const kept of this.#rows.values()) {
      if (isErased(whose, kept.key)) this.#drop(kept)
    }
    return this.#rows.size < before
  }

  #drop({ name, row }: Kept): void {
    this.#rows.delete(name)
    this.#expiries.delete({ atMs: row.expiresAtMs, id: name })
  }
}

/** Uses `contextName`, although the key is no context id, because it only has to be unique within its scope. */
function nameOf({ tenant, principal }: Scope, key: string): string {
  return contextName({ tenant, principal, contextId: key })
}

/** Counts of transitions, by chart. */
export class MemoryTransitions {
  readonly #charts = new Map<string, { atMs: number; counts: TransitionCount[] }>()

  add(counts: readonly TransitionCount[], atMs: number): void {
    for (const chart of new Set(counts.map(count => count.chart))) {
      this.#charts.set(chart, {
        atMs,
        counts: sumTransitionCounts([...this.of(chart), ...counts.filter(count => count.chart === chart)])
      })
    }
  }

  of(chart: string): TransitionCount[] {
    return [...(this.#charts.get(chart)?.counts ?? [])]
  }

  sweep(beforeMs: number): void {
    for (const [chart, { atMs }] of this.#charts) if (atMs < beforeMs) this.#charts.delete(chart)
  }
}
