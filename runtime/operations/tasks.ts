import { A2AError, invalidParams } from '../../machines/protocol/errors.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import type { CancelTaskRequest, GetTaskRequest, SubscribeToTaskRequest } from '../../machines/protocol/requests.ts'
import { isTerminal, type TaskState } from '../../machines/protocol/states.ts'
import type { Room } from '../access/call-context.ts'
import { readTaskOrThrow, taskNotFound } from '../contexts/errors.ts'
import type { ReadOptions, Scope, StoredTask } from '../store/store.ts'
import type { Opened } from '../streams/task-stream.ts'
import { TaskTail } from '../streams/task-tail.ts'
import { readWhole } from '../streams/whole-task.ts'
import { toWireTask } from '../streams/wire-view.ts'
import type { Admitted } from './admission.ts'
import { withLostRaceRetry, deliver, movedOn } from './deliver.ts'
import type { OperationServices } from './dependencies.ts'

/** GetTask (§3.1.3): the task as it is, with its artifacts; with `currentGeneration` when it has passed that one, or after a while. */
export async function getTask(services: OperationServices, call: Admitted<GetTaskRequest>): Promise<Task> {
  const { params, scope, conditions, reliable, room } = call
  const { currentGeneration } = conditions
  if (currentGeneration !== undefined) await passed(services, call, currentGeneration)
  return toWireTask(await whole(services, scope, params.id, { historyLength: params.historyLength }, room), reliable)
}

/** CancelTask (§3.1.5): the task is canceled at once, its work is told to stop. A canceled task is answered again (§3.3.1). */
export async function cancelTask(services: OperationServices, call: Admitted<CancelTaskRequest>): Promise<Task> {
  const { params, scope, connection, conditions, reliable, room } = call
  const { id: taskId } = params
  const { ifGenerationMatch: ifGeneration } = conditions
  const { task } = await readTaskOrThrow(services.store, scope, taskId)
  const key = { ...scope, contextId: task.contextId }
  const isCanceled = !isTerminal(task.status.state) && (await withLostRaceRetry(services.contexts, key, live => deliver(live, { type: 'task.cancel', taskId }, { ifGeneration }), connection)) !== undefined
  const stored = await whole(services, scope, taskId, {}, room)
  // The task had ended, or ended while the cancel was on its way.
  if (!isCanceled && ifGeneration !== undefined && ifGeneration !== stored.generation) throw movedOn(taskId)
  if (stored.task.status.state !== 'TASK_STATE_CANCELED') throw notCancelable(taskId, stored.task.status.state)
  return toWireTask(stored, reliable)
}

/**
 * SubscribeToTask (§3.1.6): the task as it is, then every later event without a gap or repeat, until it is terminal.
 * With `afterGeneration` only the events after that one, also of a task that has ended.
 */
export async function subscribeToTask(services: OperationServices, call: Admitted<SubscribeToTaskRequest>): Promise<Opened> {
  const { params, scope, conditions, reliable, numbered, room, signal } = call
  const { id: taskId } = params
  const { afterGeneration } = conditions
  const tail = new TaskTail(services, scope, taskId, { signal })
  const following = { tail, call }
  try {
    const stored = await (afterGeneration === undefined ? whole(services, scope, taskId, {}, room) : readTaskOrThrow(services.store, scope, taskId))
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

async function whole({ store }: OperationServices, scope: Scope, taskId: string, options: ReadOptions, room: Room | undefined): Promise<StoredTask> {
  const stored = await readWhole(store, scope, taskId, options, room)
  if (!stored) throw taskNotFound(taskId)
  return stored
}

/** Waits until a task has passed a generation, or has ended, for `limits.longPollMs` at the most. */
async function passed(services: OperationServices, { params, scope, signal, waits }: Admitted<GetTaskRequest>, after: number): Promise<void> {
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
  return new A2AError('TaskNotCancelable', `Task ${taskId} has ended (${state}) and cannot be canceled.`, { metadata: { taskId, state } })
}

function alreadyEnded(taskId: string, state: TaskState): A2AError {
  const text = `Task ${taskId} has ended (${state}): nothing more happens to it. Read it with GetTask.`
  return new A2AError('UnsupportedOperation', text, { metadata: { taskId, state } })
}

function aheadOfTask(generation: number): A2AError {
  return invalidParams({ field: 'afterGeneration', description: `must not be ahead of the task, which is at ${generation}` })
}
