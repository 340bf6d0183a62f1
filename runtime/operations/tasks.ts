import { A2AError, invalidParams } from '../../machines/protocol/errors.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import type { CancelTaskRequest, GetTaskRequest, SubscribeToTaskRequest } from '../../machines/protocol/requests.ts'
import { isTerminal, type TaskState } from '../../machines/protocol/states.ts'
import type { CallContext, Room } from '../access/call-context.ts'
import { completedOrThrow, readTaskOrThrow, readWholeOrThrow } from '../contexts/errors.ts'
import type { ReadOptions, Scope, StoredTask } from '../store/store.ts'
import type { Opened } from '../streams/task-stream.ts'
import { TaskTail } from '../streams/task-tail.ts'
import { LARGE_BYTES } from '../streams/whole-task.ts'
import { toWireTask } from '../streams/wire-view.ts'
import type { Admitted } from './admission.ts'
import { withLostRaceRetry, deliver, makeOnNode, movedOn } from './deliver.ts'
import type { OperationServices } from './dependencies.ts'

/** GetTask (§3.1.3): the task with its artifacts. With `currentGeneration` it waits until the task has passed that one, for `limits.longPollMs` at most. */
export function getTask(services: OperationServices, call: Admitted<GetTaskRequest>): Promise<Task> {
  const { currentGeneration } = call.conditions
  return currentGeneration === undefined
    ? read(services, call)
    : passed(services, call, currentGeneration).then(() => read(services, call))
}

/** Reads a task in one promise: with a function for each step, GetTask allocates 1.3 kB more (Node 24; `npm run bench -- --only get`). */
function read(
  { store }: OperationServices,
  { params: { id, historyLength }, scope, reliable, room }: Admitted<GetTaskRequest>
): Promise<Task> {
  return store.readTask(scope, id, { historyLength, within: LARGE_BYTES }).then(stored => {
    if (stored && !stored.large) return toWireTask(stored, reliable)
    return completedOrThrow(store, scope, id, stored, { historyLength }, room).then(whole =>
      toWireTask(whole, reliable)
    )
  })
}

/** CancelTask (§3.1.5): cancels the task at once, and aborts its work's signal. Idempotent for a canceled task (§3.3.1). */
export async function cancelTask(services: OperationServices, call: Admitted<CancelTaskRequest>): Promise<Task> {
  const { params, scope, connection, conditions, reliable, room, signal } = call
  const { id: taskId } = params
  const { ifGenerationMatch: ifGeneration } = conditions
  const request: TaskToCancel = { scope, taskId, ...(ifGeneration !== undefined && { ifGeneration }) }
  const isCanceled = await makeOnNode(
    services,
    { name: 'cancel', place: request, request, isRepeatable: ifGeneration === undefined, signal },
    () => cancelHere(services, request, connection)
  )
  const stored = await whole(services, scope, taskId, {}, room)
  // Not canceled: the task had ended, before or during this call.
  if (!isCanceled && ifGeneration !== undefined && ifGeneration !== stored.generation) throw movedOn(taskId)
  if (stored.task.status.state !== 'TASK_STATE_CANCELED') throw notCancelable(taskId, stored.task.status.state)
  return toWireTask(stored, reliable)
}

/** A task to be canceled. */
export interface TaskToCancel {
  readonly scope: Scope
  readonly taskId: string
  readonly ifGeneration?: number
}

/** Cancels a task of this node. Gives false if it has ended. */
export async function cancelHere(
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
      live => deliver(live, { type: 'task.cancel', taskId }, { ifGeneration }),
      connection
    )) !== undefined
  )
}

/**
 * SubscribeToTask (§3.1.6): streams the task, then every later event without a gap or repeat, until it is terminal. With
 * `afterGeneration` it streams only the events after that one, even of a task that has ended.
 */
export async function subscribeToTask(
  services: OperationServices,
  call: Admitted<SubscribeToTaskRequest>
): Promise<Opened> {
  const { params, scope, conditions, reliable, numbered, room, signal } = call
  const { id: taskId } = params
  const { afterGeneration } = conditions
  const tail = new TaskTail(services, scope, taskId, { signal })
  const following = { tail, call }
  try {
    const stored = await (afterGeneration === undefined
      ? whole(services, scope, taskId, {}, room)
      : readTaskOrThrow(services.store, scope, taskId))
    const { generation, task } = stored
    if (afterGeneration === undefined) {
      if (isTerminal(task.status.state)) throw alreadyEnded(taskId, task.status.state)
      numbered?.(generation)
      tail.startAfter(generation)
      return { first: { task: toWireTask(stored, reliable) }, following }
    }
    if (afterGeneration > generation) throw aheadOfTask(generation)
    tail.startAfter(afterGeneration, generation)
    if (isTerminal(task.status.state) && afterGeneration === generation) tail.end()
    return { following }
  } catch (error) {
    tail.end()
    throw error
  }
}

function whole(
  { store }: OperationServices,
  scope: Scope,
  taskId: string,
  options: ReadOptions,
  room: Room | undefined
): Promise<StoredTask> {
  return readWholeOrThrow(store, scope, taskId, options, room)
}

/** Waits until a task has passed a generation or has ended, for `limits.longPollMs` at most. */
async function passed(
  services: OperationServices,
  { params, scope, signal, waits }: Admitted<GetTaskRequest>,
  after: number
): Promise<void> {
  const tail = new TaskTail(services, scope, params.id, { signal }).until(() => true)
  const timer = services.clock.setTimeout(() => tail.end(), services.limits.longPollMs)
  try {
    const { task, generation } = await readTaskOrThrow(services.store, scope, params.id)
    waits?.()
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
