import { taskNotFound } from '../../../machines/protocol/errors.ts'
import type { Message, Task } from '../../../machines/protocol/objects.ts'
import { isTerminal, TASK_STATES, type TaskState } from '../../../machines/protocol/states.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import {
  definitionOfSnapshot,
  type Scope,
  type StoredWebhook,
  versionOfSnapshot,
  type WebhookProgress
} from '../../../runtime/store/rows.ts'
import type { StoredTask, TaskCursor, TaskEvent, TaskQuery } from '../../../runtime/store/store.ts'
import { type ChartParts, parseOutline, type SavedTask } from '../../../runtime/work-port.ts'
import type { AgentClient } from '../../client/agent-client.ts'
import { taskReferenceOf } from '../../client/requests.ts'
import { messagesBefore } from '../../inspector/story/story.ts'
import { scopesOf, type StoreReader } from '../../rows/store-reader.ts'
import { isUrl } from '../arguments.ts'
import { type Environment, type Io, usageError } from '../command.ts'
import { openReader } from '../stores.ts'
import {
  aboutKey,
  CALL_OPTIONS,
  callOption,
  type CallValues,
  type AgentPlace,
  connectTo,
  isAgentPlace,
  readPlaceOfAgent,
  withinTimeout
} from '../talk/agent-connection.ts'
import { readMoment, readState } from '../text/format.ts'

/** Filters of a list. They combine. */
export type Filters = Pick<TaskQuery, 'contextId' | 'state' | 'since'> & {
  /** Only open tasks that this version of the agent has stored; only of a store. */
  readonly version?: string
}

/** The options for filters. */
export const FILTER_OPTIONS = {
  state: { type: 'string' },
  context: { type: 'string' },
  since: { type: 'string' },
  version: { type: 'string' }
} as const

/** The filters that options set. */
export function readFilters(
  { state, context, since, version }: { readonly [Name in keyof typeof FILTER_OPTIONS]?: string | undefined },
  nowMs: number
): Filters {
  return {
    contextId: context,
    ...(state !== undefined && { state: readState('--state', state) }),
    ...(since !== undefined && { since: readMoment('--since', since, nowMs) }),
    ...(version !== undefined && { version })
  }
}

/** The number of `--limit`. */
export function readLimit(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw usageError(`--limit takes a number from 1 on, not ${JSON.stringify(text)}.`)
}

/** A task, with the scope and generation that its source reports. */
export interface FoundTask {
  readonly task: Task
  /** Its owner, if known. */
  readonly scope?: Scope
  readonly generation?: number | undefined
}

/** A complete task, with its details in a store. */
export interface CompleteTask extends FoundTask {
  /** Oldest first, up to the task's generation. */
  readonly events?: readonly TaskEvent[]
  /** The keys of its journal, in the order of first writing. Values may contain secrets, so they are never read. */
  readonly journal?: readonly string[]
  /** In the order of first registration. */
  readonly webhooks?: readonly ShownWebhook[]
  /** When its context wakes, in milliseconds since 1970: 0 while its work runs. */
  readonly wakeAtMs?: number | undefined
  /** When it fails unless it has ended, in milliseconds since 1970. */
  readonly deadlineAtMs?: number | undefined
}

/** The newest tasks of a source. */
export interface Listing {
  readonly tasks: readonly FoundTask[]
  /** How many match, if there are more than these. */
  readonly total?: number
  /** Whether the source has tasks of more than one tenant or principal. */
  readonly isMixed: boolean
}

/** A place from which tasks are read. Lists contain tasks without history and artifacts. */
export interface TaskSource {
  /** Matching tasks, latest status first, at most `limit`. */
  newest(filters: Filters, limit: number): Promise<Listing>
  /** Every task that exists at the beginning, page by page. */
  all(): AsyncIterable<FoundTask>
  /**
   * A complete task, from its scope if given. Rejects with A2AError: TaskNotFound, or InternalError for damaged data.
   */
  read(taskId: string, scope?: Scope): Promise<CompleteTask>
  /** The events of a task up to a generation, oldest first; absent if `read` gives them. */
  events?(taskId: string, generation: number): Promise<readonly TaskEvent[]>
  /** The messages of the context that led to a task, oldest first; absent if they are not known. */
  before?(task: Task, scope: Scope): Promise<readonly Message[]>
  /**
   * The chart of the work with which an open task is stored; `undefined` for a task that has ended, one without such a
   * definition, and one whose work is a function. Absent if it is not known.
   */
  workChart?(taskId: string, scope: Scope): Promise<ChartParts | undefined>
  close(): Promise<void>
}

/** Receives a message about data that is left out because it is damaged. */
type Report = (message: string) => void

/** The options for the place of tasks. Without `--db`, the first argument is the URL of an agent. */
export const SOURCE_OPTIONS = {
  db: { type: 'string' },
  ...CALL_OPTIONS,
  tenant: { type: 'string' },
  principal: { type: 'string' }
} as const

type SourceValues = { readonly [Name in 'db' | 'tenant' | 'principal']?: string | undefined } & CallValues

/** Where tasks are: exactly one of `db` and `url`. */
type Place = SourceValues & ({ readonly agent: AgentPlace } | { readonly agent?: undefined; readonly db: string })

/** The place that arguments name, and the others. Throws a usage error for none, or for two. */
export function readPlace(
  values: SourceValues,
  positionals: readonly string[],
  env: Environment
): { place: Place; rest: readonly string[] } {
  const [first] = positionals
  const isUrlFirst = first !== undefined && isUrl(first)
  if (values.db !== undefined && isUrlFirst) throw usageError('URL and --db FILE exclude each other. Give one of them.')
  if (values.db !== undefined) return { place: { ...values, db: values.db }, rest: positionals }
  const isPlaceFirst = first !== undefined && isAgentPlace(first)
  if (isPlaceFirst || values['agent-card'] !== undefined || values.endpoint !== undefined) {
    const { place: agent, rest } = readPlaceOfAgent(values, positionals, env)
    return { place: { ...values, agent }, rest }
  }
  throw usageError(
    first === undefined
      ? 'URL or --db FILE is missing.'
      : `${JSON.stringify(first)} is not a URL. Give the agent's URL first, or --db FILE.`
  )
}

/** Opens a source, calls `use` within `--timeout`, and always closes the source. */
export async function withSource<T>(
  place: Place,
  report: Report,
  io: Io,
  use: (source: TaskSource) => Promise<T>
): Promise<T> {
  return withinTimeout(place.timeout, io, async io => {
    const source = await open(place, report, io)
    try {
      return await use(source)
    } finally {
      await source.close()
    }
  })
}

async function open(place: Place, report: Report, io: Io): Promise<TaskSource> {
  const { tenant, principal } = place
  if (!place.agent) {
    const option = callOption(place)
    if (option !== undefined) throw usageError(`${option} is for a URL; a file takes none.`)
    return storeSource(place.db, { tenant, principal }, report, io)
  }
  if (tenant !== undefined || principal !== undefined)
    throw usageError('--tenant and --principal are for --db; with a URL, the key decides which tasks you see.')
  return agentSource(place.agent, io)
}

const PAGE = 100

/** The states of tasks that have not ended. */
export const OPEN_STATES = (Object.keys(TASK_STATES) as TaskState[]).filter(state => !isTerminal(state))

/** The tasks of a file or database, of all tenants and principals or of one, even while a server uses it. */
async function storeSource(
  db: string,
  { tenant, principal }: Partial<Record<keyof Scope, string | undefined>>,
  report: Report,
  { cwd, signal }: Io
): Promise<TaskSource> {
  const openReporting = (report: Report) => openReader(db, cwd, { warn: report, error: report })
  const store = await openReporting(report)
  // Damage elsewhere in the context of a task is not reported with that task.
  const contexts = await openReporting(() => {})
  const wanted = () => scopesOf(store, { tenant, principal })
  return {
    newest: async (filters, limit) => {
      const scopes = await wanted()
      const tasksIn = (scope: Scope) => tasksOf(store, scope, filters, signal)
      // One more than the limit shows whether there are more.
      const tasks = await newestOf(tasksIn, scopes, limit + 1)
      const isMixed = scopes.length > 1
      if (tasks.length <= limit) return { tasks, isMixed }
      return { tasks: tasks.slice(0, limit), total: await totalOf(store, scopes, filters, tasksIn), isMixed }
    },
    all: async function* () {
      for (const scope of await wanted())
        yield* everyTask((since, after: TaskCursor | undefined) => scopePage(store, scope, { since }, after, signal))
    },
    read: async (taskId, known) => {
      for (const scope of known ? [known] : await wanted()) {
        const stored = await store.readTask(scope, taskId)
        if (stored)
          return { ...(await recordOf(store, scope, stored)), ...(await timersOf(contexts, scope, stored, report)) }
      }
      throw taskNotFound(taskId)
    },
    before: (task, scope) => messagesBefore(store, scope, task),
    workChart: async (taskId, scope) => {
      const snapshot = await store.readSnapshot(scope, taskId)
      const digest = snapshot === undefined ? undefined : definitionOfSnapshot(snapshot)
      const text = digest === undefined ? undefined : await store.readDefinition(digest)
      const work = text === undefined ? undefined : parseOutline(text).work
      return work?.kind === 'chart' ? work.chart : undefined
    },
    close: async () => void (await Promise.all([store.close(), contexts.close()]))
  }
}

/** The newest tasks of these scopes, latest status first. */
export async function newestOf(
  tasksIn: (scope: Scope) => AsyncIterable<FoundTask>,
  scopes: readonly Scope[],
  limit: number
): Promise<FoundTask[]> {
  let newest: FoundTask[] = []
  for (const scope of scopes) {
    const oldest = newest[limit - 1]
    const own: FoundTask[] = []
    for await (const found of tasksIn(scope)) {
      if (own.length === limit || (oldest && timeOf(found) <= timeOf(oldest))) break
      own.push(found)
    }
    newest = [...newest, ...own].toSorted(latestFirst).slice(0, limit)
  }
  return newest
}

async function totalOf(
  store: StoreReader,
  scopes: readonly Scope[],
  { version, ...filters }: Filters,
  tasksIn: (scope: Scope) => AsyncIterable<FoundTask>
): Promise<number> {
  let total = 0
  for (const scope of scopes)
    if (version !== undefined) for await (const _ of tasksIn(scope)) total += 1
    else total += (await store.listTasks(scope, { ...filters, limit: 1, historyLength: 0, artifacts: false })).total
  return total
}

/** The tasks of a scope that match, latest status first. */
export async function* tasksOf(
  store: StoreReader,
  scope: Scope,
  { version, ...filters }: Filters,
  signal: AbortSignal
): AsyncGenerator<FoundTask, void, undefined> {
  let after: TaskCursor | undefined
  do {
    const { tasks, next } = await scopePage(store, scope, filters, after, signal)
    for (const found of tasks)
      if (version === undefined || (await storedVersion(store, scope, found)) === version) yield found
    after = next
  } while (after)
}

/** Every open task of a scope that exists at the beginning, in any order. */
export async function* openTasksOf(
  store: StoreReader,
  scope: Scope,
  { version, state: wanted, since: earliest, ...filters }: Filters,
  signal: AbortSignal
): AsyncGenerator<FoundTask, void, undefined> {
  for (const state of OPEN_STATES.filter(state => state === (wanted ?? state)))
    for await (const found of everyTask((since = earliest, after: TaskCursor | undefined) =>
      scopePage(store, scope, { ...filters, state, since }, after, signal)
    ))
      if (version === undefined || (await storedVersion(store, scope, found)) === version) yield found
}

/** The version of the agent that stored an open task; `undefined` for one that has ended. */
async function storedVersion(store: StoreReader, scope: Scope, { task }: FoundTask): Promise<string | undefined> {
  const snapshot = isTerminal(task.status.state) ? undefined : await store.readSnapshot(scope, task.id)
  return snapshot === undefined ? undefined : versionOfSnapshot(snapshot)
}

/** A page of the tasks of a scope that match. */
export async function scopePage(
  store: StoreReader,
  scope: Scope,
  filters: Omit<Filters, 'version'>,
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
async function recordOf(store: StoreReader, scope: Scope, { task, generation }: StoredTask): Promise<CompleteTask> {
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
): Promise<Pick<CompleteTask, 'wakeAtMs' | 'deadlineAtMs'>> {
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

/** The caller's own tasks, read through the agent. */
async function agentSource(place: AgentPlace, io: Io): Promise<TaskSource> {
  const client = await connectTo(place, io)
  const { signal } = io
  const fail = (error: unknown): never => {
    throw aboutKey(error, place)
  }
  const listed = (filters: Filters) => pagesOf(client, filters, signal)
  return {
    newest: async (filters, limit) => {
      const tasks: FoundTask[] = []
      const pageAfter = listed(filters)
      let after: string | undefined
      do {
        const page = await pageAfter(after).catch(fail)
        tasks.push(...page.tasks)
        if (tasks.length > limit)
          return { tasks: tasks.slice(0, limit), total: Math.max(page.total, tasks.length), isMixed: false }
        after = page.next
      } while (after !== undefined)
      return { tasks, isMixed: false }
    },
    all: () => {
      let pageAfter = listed({})
      return everyTask((since, after: string | undefined) => {
        if (after === undefined) pageAfter = listed({ since })
        return pageAfter(after).catch(fail)
      })
    },
    read: async id => found(await client.getTask({ id }, { signal }).catch(fail)),
    events: (id, generation) => eventsUntil(client, id, generation, signal).catch(fail),
    close: () => client.close()
  }
}

/** The stored events of a task up to a generation; the agent has to number them. */
async function eventsUntil(client: AgentClient, id: string, until: number, signal: AbortSignal): Promise<TaskEvent[]> {
  const events: TaskEvent[] = []
  for await (const event of client.subscribeToTask({ id }, { afterGeneration: 0, signal })) {
    const { generation = 0 } = taskReferenceOf(event)
    if ('statusUpdate' in event || 'artifactUpdate' in event) events.push({ taskId: id, generation, update: event })
    if (generation >= until) break
  }
  return events
}

/**
 * Reads a list page by page, each with the total number of matching tasks. The list ends at an empty page and at a
 * token that it had before, so that no agent makes it endless with these.
 */
function pagesOf(
  client: AgentClient,
  { contextId, state, since }: Filters,
  signal: AbortSignal
): (pageToken: string | undefined) => Promise<Page<string> & { total: number }> {
  const had = new Set([''])
  return async pageToken => {
    const { tasks, totalSize, nextPageToken } = await client.listTasks(
      {
        ...(contextId !== undefined && { contextId }),
        ...(state !== undefined && { status: state }),
        ...(since !== undefined && { statusTimestampAfter: since }),
        ...(pageToken !== undefined && { pageToken }),
        pageSize: PAGE,
        historyLength: 0,
        includeArtifacts: false
      },
      { signal }
    )
    const isLast = tasks.length === 0 || had.has(nextPageToken)
    had.add(nextPageToken)
    return { tasks: tasks.map(found), total: totalSize, next: isLast ? undefined : nextPageToken }
  }
}

function found(task: Task): FoundTask {
  const reliability = task.metadata?.[RELIABILITY_EXTENSION] as { generation?: unknown } | null | undefined
  const generation = reliability?.generation
  return { task, ...(typeof generation === 'number' && { generation }) }
}

/** A page of a list, latest status first, and the start of the next page, if there is one. */
interface Page<Place> {
  readonly tasks: readonly FoundTask[]
  readonly next?: Place | undefined
}

/**
 * Yields every task of a list once. A task whose status changes while pages are read moves to the front, where it could
 * be missed. So the front is read again until it fits on one page, or contains nothing new. Remembers only the ids of
 * tasks that can appear again.
 */
export async function* everyTask<Place>(
  pageOf: (since: string | undefined, after: Place | undefined) => Promise<Page<Place>>
): AsyncGenerator<FoundTask, void, undefined> {
  const mayComeAgain = new Set<string>()
  let since: string | undefined
  for (;;) {
    let front: string | undefined
    let after: Place | undefined
    let pages = 0
    let isNew = false
    do {
      const { tasks, next } = await pageOf(since, after)
      if (pages === 0) front = tasks[0]?.task.status.timestamp
      for (const found of tasks) {
        const {
          id,
          status: { state, timestamp = '' }
        } = found.task
        // Other agents may ignore the filter.
        if (mayComeAgain.has(id) || timestamp < (since ?? '')) continue
        if (!isTerminal(state) || timestamp >= (front ?? '')) mayComeAgain.add(id)
        isNew = true
        yield found
      }
      pages += 1
      after = next
    } while (after !== undefined)
    if (pages === 1 || !isNew) return
    since = front
  }
}

/** A webhook and its progress. The path and query of its URL are left out, since they may be secret. */
export interface ShownWebhook extends WebhookProgress {
  readonly id: string
  readonly host: string
  /** The version of A2A in which events are delivered. */
  readonly version: string
  /** The generation of the task's newest event. */
  readonly generation: number
}

function shownWebhook({ row: { id, webhook, version, progress }, generation }: StoredWebhook): ShownWebhook {
  return { id, host: new URL(webhook.url).origin, version, generation, ...progress }
}
