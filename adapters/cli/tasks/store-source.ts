import { isTerminal } from '../../../machines/protocol/states.ts'
import { taskNotFound } from '../../../runtime/contexts/errors.ts'
import type { SavedTask } from '../../../runtime/snapshots/restored-task.ts'
import type { Scope, StoredTask, TaskCursor } from '../../../runtime/store/store.ts'
import type { StoreReader } from '../../rows/store-reader.ts'
import type { Io } from '../command.ts'
import { openReader } from '../serve/open-store.ts'
import { everyTask, type Page } from './every-task.ts'
import type { Filters, FoundTask, Report, TaskRecord, TaskSource } from './source.ts'
import { shownWebhook } from './webhook-lines.ts'

const PAGE = 100

/** The tasks of a file or database, of all tenants and principals or of one, even while a server uses it. */
export async function storeSource(
  db: string,
  { tenant, principal }: Partial<Record<keyof Scope, string | undefined>>,
  report: Report,
  { cwd, signal }: Io
): Promise<TaskSource> {
  const readerTelling = (tell: Report) => openReader(db, cwd, { warn: tell, error: tell })
  const store = await readerTelling(report)
  // Damage elsewhere in the context of a task is not reported with that task.
  const contexts = await readerTelling(() => {})
  const isWanted = (scope: Scope) =>
    (tenant ?? scope.tenant) === scope.tenant && (principal ?? scope.principal) === scope.principal
  const wanted = async () => (await store.scopes()).filter(isWanted)
  return {
    newest: async (filters, limit) => {
      const scopes = await wanted()
      // One more than the limit shows whether there are more.
      const tasks = await newestOf(store, scopes, filters, limit + 1, signal)
      const isMixed = scopes.length > 1
      if (tasks.length <= limit) return { tasks, isMixed }
      return { tasks: tasks.slice(0, limit), total: await totalOf(store, scopes, filters), isMixed }
    },
    all: async function* () {
      for (const scope of await wanted())
        yield* everyTask((since, after: TaskCursor | undefined) => pageOf(store, scope, { since }, after, signal))
    },
    read: async (taskId, known) => {
      for (const scope of known ? [known] : await wanted()) {
        const stored = await store.readTask(scope, taskId)
        if (stored)
          return { ...(await recordOf(store, scope, stored)), ...(await timersOf(contexts, scope, stored, report)) }
      }
      throw taskNotFound(taskId)
    },
    close: async () => void (await Promise.all([store.close(), contexts.close()]))
  }
}

async function newestOf(
  store: StoreReader,
  scopes: readonly Scope[],
  filters: Filters,
  limit: number,
  signal: AbortSignal
): Promise<FoundTask[]> {
  let newest: FoundTask[] = []
  for (const scope of scopes) {
    const oldest = newest[limit - 1]
    const own: FoundTask[] = []
    for await (const found of tasksOf(store, scope, filters, signal)) {
      if (own.length === limit || (oldest && timeOf(found) <= timeOf(oldest))) break
      own.push(found)
    }
    newest = [...newest, ...own].toSorted(latestFirst).slice(0, limit)
  }
  return newest
}

async function totalOf(store: StoreReader, scopes: readonly Scope[], filters: Filters): Promise<number> {
  let total = 0
  for (const scope of scopes)
    total += (await store.listTasks(scope, { ...filters, limit: 1, historyLength: 0, artifacts: false })).total
  return total
}

async function* tasksOf(
  store: StoreReader,
  scope: Scope,
  filters: Filters,
  signal: AbortSignal
): AsyncGenerator<FoundTask, void, undefined> {
  let after: TaskCursor | undefined
  do {
    const { tasks, next } = await pageOf(store, scope, filters, after, signal)
    yield* tasks
    after = next
  } while (after)
}

async function pageOf(
  store: StoreReader,
  scope: Scope,
  filters: Filters,
  after: TaskCursor | undefined,
  signal: AbortSignal
): Promise<Page<TaskCursor>> {
  signal.throwIfAborted()
  const { tasks, next } = await store.listTasks(scope, {
    ...filters,
    after,
    limit: PAGE,
    historyLength: 0,
    artifacts: false
  })
  return { tasks: tasks.map(({ task, generation }) => ({ task, generation, scope })), next }
}

/** The events end at the generation of the task that was read; newer ones are left out. */
async function recordOf(store: StoreReader, scope: Scope, { task, generation }: StoredTask): Promise<TaskRecord> {
  const events = await store.readEvents(scope, task.id, 0, generation)
  const journal = (await store.readJournal(scope, task.id)).map(({ key }) => key)
  const webhooks = (await store.readWebhooks(scope, task.id)).map(shownWebhook)
  return { task, generation, scope, events, journal, ...(webhooks.length > 0 && { webhooks }) }
}

/** The pending timers of a task. If its context is damaged, that is reported, and the rest of the task is shown. */
async function timersOf(
  store: StoreReader,
  scope: Scope,
  { task: { id, contextId, status } }: StoredTask,
  report: Report
): Promise<Pick<TaskRecord, 'wakeAtMs' | 'deadlineAtMs'>> {
  try {
    const stored = isTerminal(status.state) ? undefined : await store.loadContext({ ...scope, contextId }, 0)
    const row = stored?.tasks.find(row => row.taskId === id)
    const snapshot = row && (await store.readSnapshot(scope, id))
    if (!row || snapshot === undefined) return {}
    const { context } = JSON.parse(snapshot) as Partial<SavedTask>
    return { wakeAtMs: row.wakeAtMs, deadlineAtMs: context?.deadlineAtMs }
  } catch (error) {
    report((error as Error).message)
    return {}
  }
}

function timeOf({ task }: FoundTask): string {
  return task.status.timestamp ?? ''
}

function latestFirst(a: FoundTask, b: FoundTask): number {
  return timeOf(a) === timeOf(b) ? 0 : timeOf(a) < timeOf(b) ? 1 : -1
}
