import type { PromiseActorLogic } from 'xstate'
import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import { textOf } from '../authoring/words.ts'
import type { GeneratorArguments } from '../authoring/work-arguments.ts'
import { taskIdOf, hostOf } from '../commits/actor-host.ts'
import type { WorkStore } from '../store/retrying-reads.ts'
import type { Scope } from '../store/rows.ts'
import { TaskTail, type TailSources } from '../streams/task-tail.ts'
import { fromPromise } from './refining.ts'
import type { WorkLoads } from './task-loads.ts'

const END_PHRASES: Readonly<Record<string, string>> = {
  TASK_STATE_FAILED: 'has failed',
  TASK_STATE_CANCELED: 'has been canceled',
  TASK_STATE_REJECTED: 'has been rejected'
}

/** Errors that another attempt of the work would get again. */
const permanentErrors = new WeakSet<object>()

/** Parameters of a wait for another task. */
export interface Search extends TailSources {
  readonly store: WorkStore
  readonly scope: Scope
  readonly loads: WorkLoads
  readonly signal: AbortSignal
  /** Called with `true` when the wait begins, and with `false` when it ends, unless the signal aborted it. */
  readonly noteWaiting: (isWaiting: boolean) => void
}

/**
 * Waits until a task of the scope, in any context, has completed, and gives it. Rejects with TaskNotFound if it does
 * not exist or has been removed, and with UnsupportedOperation if it ended otherwise; clients read these messages.
 * Rejects with RateLimited if there is no memory to load it, and with the signal's reason if that aborts.
 */
export async function awaitTask(taskId: string, search: Search): Promise<Task> {
  const { store, scope, loads, signal, noteWaiting } = search
  const tail = new TaskTail(search, scope, taskId, { signal })
  try {
    const now = await store.readTask(scope, taskId, { historyLength: 0, artifacts: false })
    if (now && !isTerminal(now.task.status.state)) {
      noteWaiting(true)
      // An error means that the task was removed, which the next read finds, or that the runtime closes and has stopped
      // the work.
      await tail
        .startAfter(now.generation)
        .drain()
        .catch(() => {})
      signal.throwIfAborted()
      noteWaiting(false)
    }
    const ended = now && (await store.readTask(scope, taskId, { historyLength: 0, artifacts: false }))
    if (ended && ended.task.status.state !== 'TASK_STATE_COMPLETED') throw notCompleted(ended.task)
    const [size] = await store.measureTasks({ ...scope, taskIds: [taskId] })
    const completed = size && (await loads.loadAwaited(size).catch(permanentIfTooLarge))
    if (!completed) throw notFound(taskId)
    return completed
  } finally {
    tail.end()
  }
}

/** Whether an error of an awaited task is permanent, so that a restart of the work is useless. */
export function isPermanent(error: unknown): boolean {
  return typeof error === 'object' && error !== null && permanentErrors.has(error)
}

/** A completed task does not shrink, so one that does not fit now never fits. */
function permanentIfTooLarge(error: unknown): never {
  throw isA2AError(error) && error.code === 'RateLimited' ? permanent(error) : error
}

function notFound(taskId: string): A2AError {
  return permanent(
    new A2AError('TaskNotFound', `Task ${taskId}, which this one needs, was not found.`, { metadata: { taskId } })
  )
}

function notCompleted({ id: taskId, status: { state, message } }: Task): A2AError {
  const reason = message ? textOf(message) : ''
  const text = `Task ${taskId}, which this one needs, ${END_PHRASES[state]}${reason === '' ? '.' : `: ${reason}`}`
  return permanent(new A2AError('UnsupportedOperation', text, { metadata: { taskId, state } }))
}

function permanent(error: A2AError): A2AError {
  permanentErrors.add(error)
  return error
}

/** The result of `work.prerequisites()`. */
export function prerequisitesOf(
  work: Pick<GeneratorArguments, 'message' | 'referenceTasks' | 'unloadedTasks' | 'completed'>
): Promise<Task[]> {
  const known = new Set([...work.referenceTasks.map(({ id }) => id), ...work.unloadedTasks])
  const taskIds = [...new Set(work.message.referenceTaskIds)].filter(taskId => known.has(taskId))
  return Promise.all(taskIds.map(taskId => work.completed(taskId)))
}

/**
 * Actor logic for statecharts: waits for another task of the caller's, as `work.completed` does, and outputs the
 * completed task: `invoke: { src: 'taskCompleted', input: { taskId }, onDone, onError }`. Without `onError` its error
 * fails the task, and the client reads the reason.
 */
export const taskCompleted: PromiseActorLogic<Task, { taskId: string }> = fromPromise(
  async ({ input, self, system, signal }) => hostOf(system).completedTask(input.taskId, taskIdOf(self), signal)
)
