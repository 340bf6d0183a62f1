import { createHash } from 'node:crypto'
import { A2AError, invalidParams, taskNotFound } from '../../machines/protocol/errors.ts'
import type {
  CancelTaskRequest,
  GetTaskRequest,
  ListTasksRequest,
  ListTasksResponse,
  SubscribeToTaskRequest,
  Task
} from '../../machines/protocol/objects.ts'
import { isTerminal, type TaskState } from '../../machines/protocol/states.ts'
import { NEXT_VERSION } from '../../machines/protocol/versions.ts'
import { ANONYMOUS, type CallContext, type NamedGeneration } from '../access/call-context.ts'
import type { ContextRegistry } from '../contexts/context-registry.ts'
import { rejectUnknown } from '../primitives/options.ts'
import type { Scope } from '../store/rows.ts'
import type { Erasure, Store, StoredTask, TaskCursor, TaskQuery } from '../store/store.ts'
import {
  completedOrThrow,
  firstRead,
  loadWholeTask,
  LARGE_BYTES,
  NOTHING_AT_ONCE,
  type OpenedStream,
  PIECE_BYTES,
  readOptionsFor,
  readTaskOrThrow,
  readWholeOrThrow,
  toWireTask
} from '../streams/task-stream.ts'
import { type TaskSubscriptions, TaskTail } from '../streams/task-tail.ts'
import type { Admitted } from './admission.ts'
import { deliverEvent, generationMismatch, type ChangeKind, runOnOwner, withLostRaceRetry } from './deliver.ts'
import type { OperationServices, Push } from './dependencies.ts'
import { withdrawByKey } from './keyed-messages.ts'

/**
 * GetTask (§3.1.3): the task with its artifacts. With `currentGeneration` it waits until the task has passed that one,
 * for `limits.longPollMs` at most.
 */
export function getTask(services: OperationServices, call: Admitted<GetTaskRequest>): Promise<Task> {
  const { currentGeneration } = call.conditions
  return currentGeneration === undefined
    ? read(services, call)
    : untilPassed(services, call, Number(currentGeneration)).then(() => read(services, call))
}

/**
 * Reads a task in one promise: with a function for each step, GetTask allocates 1.3 kB more (Node 24; `npm run bench --
 * --only get`).
 */
function read({ store }: OperationServices, call: Admitted<GetTaskRequest>): Promise<Task> {
  const {
    params: { id },
    scope,
    budget
  } = call
  const options = readOptionsFor(call, call.params)
  return store.readTask(scope, id, firstRead(options)).then(stored => {
    if (stored && !stored.large) return toWireTask(stored, call)
    return completedOrThrow(store, scope, id, stored, options, budget).then(whole => toWireTask(whole, call))
  })
}

/**
 * CancelTask (§3.1.5): cancels the task at once, and aborts its work's signal. Idempotent for a canceled task (§3.3.1).
 */
export async function cancelTask(services: OperationServices, call: Admitted<CancelTaskRequest>): Promise<Task> {
  const { params, scope, connection, conditions, keyToCancel, budget, signal } = call
  const taskId = (keyToCancel && (await withdrawByKey(services, call, keyToCancel))) ?? params.id
  const { ifGenerationMatch: ifGeneration } = conditions
  const request: TaskToCancel = { scope, taskId, ...(ifGeneration !== undefined && { ifGeneration }) }
  const isCanceled = await runOnOwner(services, CANCEL, request, { connection, signal })
  const stored = await readWholeOrThrow(services.store, scope, taskId, readOptionsFor(call), budget)
  // Not canceled: the task had ended, before or during this call.
  if (!isCanceled && ifGeneration !== undefined && ifGeneration !== stored.generation)
    throw generationMismatch(taskId, ifGeneration, stored.generation)
  if (stored.task.status.state !== 'TASK_STATE_CANCELED') throw notCancelable(taskId, stored.task.status.state)
  return toWireTask(stored, call)
}

/** A task to be canceled. */
export interface TaskToCancel {
  readonly scope: Scope
  readonly taskId: string
  readonly ifGeneration?: NamedGeneration
}

/** Cancels a task. Gives false if it has ended. */
export const CANCEL: ChangeKind<TaskToCancel, boolean> = {
  name: 'cancel',
  placeOf: request => request,
  isRepeatable: ({ ifGeneration }) => ifGeneration === undefined,
  run: cancelHere
}

async function cancelHere(
  services: OperationServices,
  { scope, taskId, ifGeneration }: TaskToCancel,
  connection?: CallContext['connection']
): Promise<boolean> {
  const { task } = await readTaskOrThrow(services.store, scope, taskId)
  const key = { ...scope, contextId: task.contextId }
  if (isTerminal(task.status.state)) return false
  return (
    (await withLostRaceRetry(
      services.contexts,
      key,
      live => deliverEvent(live, { type: 'task.cancel', taskId }, { ifGeneration }),
      connection
    )) !== undefined
  )
}

/**
 * SubscribeToTask (§3.1.6): streams the task, then every later event without a gap or repeat, until it is terminal.
 * With `afterGeneration` it streams only the events after that generation, even of a task that has ended.
 */
export async function subscribeToTask(
  services: OperationServices,
  call: Admitted<SubscribeToTaskRequest>
): Promise<OpenedStream> {
  const { store } = services
  const { params, scope, conditions, signal } = call
  const { afterGeneration } = conditions
  // It listens before the task is read, so that no event is missed.
  const tail = new TaskTail(services, scope, params.id, { signal })
  try {
    return await (afterGeneration === undefined
      ? streamTask(store, call, tail)
      : streamEventsAfter(Number(afterGeneration), store, call, tail))
  } catch (error) {
    tail.end()
    throw error
  }
}

/** The stream of a task: the task first, then its events. */
async function streamTask(store: Store, call: Admitted<SubscribeToTaskRequest>, tail: TaskTail): Promise<OpenedStream> {
  const { params, scope, onGeneration, budget } = call
  const stored = await readWholeOrThrow(store, scope, params.id, readOptionsFor(call), budget)
  const { state } = stored.task.status
  if (isTerminal(state)) throw alreadyEnded(params.id, state)
  onGeneration?.(stored.generation)
  tail.startAfter(stored.generation)
  return { first: { task: toWireTask(stored, call) }, following: { tail, call } }
}

/** The stream of the events after a generation, which the task may have ended with. */
async function streamEventsAfter(
  afterGeneration: number,
  store: Store,
  call: Admitted<SubscribeToTaskRequest>,
  tail: TaskTail
): Promise<OpenedStream> {
  const { task, generation } = await readTaskOrThrow(store, call.scope, call.params.id)
  if (afterGeneration > generation) throw aheadOfTask(generation)
  tail.startAfter(afterGeneration, generation)
  if (isTerminal(task.status.state) && afterGeneration === generation) tail.end()
  return { following: { tail, call } }
}

/** Waits until a task has passed a generation or has ended, for `limits.longPollMs` at most. */
async function untilPassed(
  services: OperationServices,
  { params, scope, signal, releaseRead }: Admitted<GetTaskRequest>,
  after: number
): Promise<void> {
  const tail = new TaskTail(services, scope, params.id, { signal }).untilNext()
  const timer = services.clock.setTimeout(() => tail.end(), services.limits.longPollMs)
  try {
    const { task, generation } = await readTaskOrThrow(services.store, scope, params.id)
    releaseRead?.()
    if (generation <= after && !isTerminal(task.status.state)) await tail.startAfter(generation).drain()
    signal?.throwIfAborted()
  } finally {
    services.clock.clearTimeout(timer)
    tail.end()
  }
}

function notCancelable(taskId: string, state: TaskState): A2AError {
  return new A2AError('TaskNotCancelable', `Task ${taskId} has ended (${state}) and cannot be canceled.`, {
    metadata: { taskId, state }
  })
}

function alreadyEnded(taskId: string, state: TaskState): A2AError {
  const text = `Task ${taskId} has ended (${state}), so it has no more events. Read it with GetTask.`
  return new A2AError('UnsupportedOperation', text, { metadata: { taskId, state } })
}

function aheadOfTask(generation: number): A2AError {
  return invalidParams({
    field: 'afterGeneration',
    description: `must not be ahead of the task, which is at ${generation}`
  })
}

/** Length of a SHA-256 in base64url. */
const DIGEST_LENGTH = 43

/** The filters that a page token is bound to. */
type Filters = Pick<TaskQuery, 'contextId' | 'state' | 'since'>

/**
 * A stateless cursor for a list: a digest of scope, filters and position, then the position. It stays valid as long as
 * the tasks exist, even after a restart, and reveals nothing that the page did not.
 */
function pageToken(place: TaskCursor, scope: Scope, filters: Filters): string {
  const { timestamp, taskId } = place
  const { tenant, principal } = scope
  const { contextId = null, state = null, since = null } = filters
  const digest = createHash('sha256')
    .update(JSON.stringify([tenant, principal, contextId, state, since, timestamp, taskId]))
    .digest('base64url')
  return digest + Buffer.from(`${timestamp} ${taskId}`).toString('base64url')
}

/**
 * The position in a token for this scope and these filters. Throws InvalidParams for any other text. A forged token is
 * harmless: it can only name another position in the caller's own list.
 */
function placeOf(token: string, scope: Scope, filters: Filters): TaskCursor {
  const text = Buffer.from(token.slice(DIGEST_LENGTH), 'base64url').toString()
  const space = text.indexOf(' ')
  const place = { timestamp: text.slice(0, Math.max(0, space)), taskId: text.slice(space + 1) }
  if (pageToken(place, scope, filters) !== token) throw invalidToken()
  return place
}

function invalidToken(): A2AError {
  return invalidParams({
    field: 'pageToken',
    description:
      'must be the nextPageToken of an answer to the same caller, with the same contextId, status and statusTimestampAfter. Leave it out to begin again'
  })
}

const PAGE_SIZE = 50

/** Maximum bytes of a page's tasks, unless the first has more. */
const PAGE_BYTES = 1024 * 1024

/** Maximum bytes of a page's tasks with timelines, which repeat the messages of a history. */
const TIMELINES_BYTES = PAGE_BYTES / 2

/** Maximum bytes of tasks that are read at once. The others of a page are read in pieces. */
const AT_ONCE_BYTES = LARGE_BYTES / 2

/**
 * ListTasks (§3.1.4): one page of the caller's tasks, latest status first.
 *
 * Over the pages of a list no task comes twice, and no task whose status stays the same is missing. A task whose status
 * changes between pages moves to the front; if it had not come yet, only a new list has it. Without `historyLength` a
 * task has its whole history, as with GetTask. A page has at least one task, and ends before its tasks exceed 1 MiB.
 * `artifacts` is present, even if empty, exactly if the request includes artifacts.
 */
export async function listTasks(
  { store }: OperationServices,
  call: Admitted<ListTasksRequest>
): Promise<ListTasksResponse> {
  const { params, scope, budget } = call
  const {
    contextId,
    status: state,
    statusTimestampAfter: since,
    pageSize = PAGE_SIZE,
    historyLength,
    includeArtifacts: artifacts = false
  } = params
  const filters = { contextId, state, since }
  const { timelineLength = 0 } = readOptionsFor(call, params)
  // The generations of artifacts are read with the timeline.
  const isNumbered = call.version === NEXT_VERSION && (timelineLength > 0 || artifacts)
  const options = { historyLength, artifacts, ...(isNumbered && { timelineLength }) }
  const after = params.pageToken === undefined ? undefined : placeOf(params.pageToken, scope, filters)
  const { tasks, total, next } = await store.listTasks(scope, {
    ...filters,
    after,
    limit: pageSize,
    ...(isNumbered
      ? { within: NOTHING_AT_ONCE, bytes: TIMELINES_BYTES }
      : { historyLength, artifacts, within: AT_ONCE_BYTES, bytes: PAGE_BYTES })
  })
  const missing = tasks.reduce((sum, stored) => sum + missingBytes(stored), 0)
  if (missing > (isNumbered ? AT_ONCE_BYTES : 0)) await budget?.(missing)
  const whole: StoredTask[] = []
  for (const piece of piecesOf(tasks)) {
    const read = await Promise.all(piece.map(stored => loadWholeTask(store, scope, stored, options)))
    // A task that was removed since is omitted.
    whole.push(...read.flatMap(stored => stored ?? []))
  }
  return {
    tasks: whole.map(stored => ({ ...(artifacts && { artifacts: [] }), ...toWireTask(stored, call) })),
    nextPageToken: next ? pageToken(next, scope, filters) : '',
    pageSize,
    totalSize: total
  }
}

/** The bytes of a task that a store gave without history and artifacts; 0 if it is whole. */
function missingBytes({ large }: StoredTask): number {
  return large?.bytes ?? 0
}

/** A page's tasks in order, in groups of which at most {@link PIECE_BYTES} are missing, or one task. */
function piecesOf(tasks: readonly StoredTask[]): StoredTask[][] {
  const pieces: StoredTask[][] = []
  let left = 0
  for (const stored of tasks) {
    left -= missingBytes(stored)
    const piece = pieces.at(-1)
    if (piece && left >= 0) piece.push(stored)
    else {
      pieces.push([stored])
      left = PIECE_BYTES - missingBytes(stored)
    }
  }
  return pieces
}

/** The data to erase: all of a principal, or one of its contexts. */
export interface DataToErase {
  /** Default: the tenant with the empty name. */
  readonly tenant?: string
  /** Default `anonymous`. */
  readonly principal?: string
  /** Default: everything of the principal. */
  readonly contextId?: string
}

/**
 * Erases a context or a scope, first in memory, then in the store, or with `eraseRows`. Streams of its tasks end with
 * TaskNotFound. Gives whether there was anything.
 */
export async function erase(
  {
    store,
    contexts,
    subscriptions,
    push
  }: { store: Store; contexts: ContextRegistry; subscriptions: TaskSubscriptions; push?: Push | undefined },
  whose: Erasure,
  eraseRows = () => store.erase(whose)
): Promise<boolean> {
  return contexts.withhold(whose, async () => {
    const wasThere = await eraseRows()
    await push?.webhooks.erased(whose)
    for (const taskId of subscriptions.tasksOf(whose)) {
      const stored = await store.readTask(whose, taskId, { historyLength: 0, artifacts: false })
      if (!stored) subscriptions.end(whose, taskId, taskNotFound(taskId))
    }
    return wasThere
  })
}

/**
 * Fills in the defaults. Throws TypeError for a member that is present but no string, such as `undefined`, since a
 * default would erase too much.
 */
export function erasureOf(data: DataToErase): Erasure {
  rejectUnknown(data, ['tenant', 'principal', 'contextId'], 'erase')
  for (const [name, value] of Object.entries(data)) {
    if (typeof value !== 'string')
      throw new TypeError(`erase: ${name} has to be a text, not ${String(value)}. Leave it out for its default.`)
  }
  return { tenant: '', principal: ANONYMOUS, ...data }
}
