import type { PromiseActorLogic } from 'xstate'
import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import { textOf } from '../authoring/words.ts'
import type { WorkArguments } from '../authoring/work-arguments.ts'
import { familyOf, hostOf } from '../commits/actor-host.ts'
import type { Scope } from '../store/store.ts'
import { TaskTail, type TailSources } from '../streams/task-tail.ts'
import { fromPromise } from './promise-actor.ts'
import type { WorkLoads } from './task-loads.ts'

/** How a task ended that did not complete, in a sentence. */
const ENDS: Readonly<Record<string, string>> = {
  TASK_STATE_FAILED: 'has failed',
  TASK_STATE_CANCELED: 'has been canceled',
  TASK_STATE_REJECTED: 'has been rejected'
}

/** Errors of this module: who meets one would meet it again. */
const lasting = new WeakSet<object>()

/** What a needed task is looked for with. */
export interface Search extends TailSources {
  readonly scope: Scope
  readonly loads: WorkLoads
  readonly signal: AbortSignal
  /** Hears that it has to be waited for, and that this is over, unless the signal ended it. */
  readonly waits: (isWaiting: boolean) => void
}

/**
 * Waits until a task of the scope has completed, in whatever context it is, and gives it as it is then. Rejects with
 * TaskNotFound if there is none, or none any more, with UnsupportedOperation if it ended otherwise, both for the client to
 * read; with RateLimited if there is no room to load it; with the signal's reason if that aborts.
 */
export async function awaitTask(taskId: string, search: Search): Promise<Task> {
  const { store, scope, loads, signal, waits } = search
  const tail = new TaskTail(search, scope, taskId, { signal })
  try {
    const now = await store.readTask(scope, taskId, { historyLength: 0, artifacts: false })
    if (now && !isTerminal(now.task.status.state)) {
      waits(true)
      // Its error: the task is gone, which is seen when it is read again, or the runtime closes, and has stopped the work before.
      await tail.startAfter(now.generation).drain().catch(() => {})
      signal.throwIfAborted()
      waits(false)
    }
    const ended = now && (await store.readTask(scope, taskId, { historyLength: 0, artifacts: false }))
    if (ended && ended.task.status.state !== 'TASK_STATE_COMPLETED') throw notCompleted(ended.task)
    const [size] = await store.measureTasks({ ...scope, taskIds: [taskId] })
    const completed = size && (await loads.loadAwaited(size).catch(failed))
    if (!completed) throw absent(taskId)
    return completed
  } finally {
    tail.end()
  }
}

/** Whether an error says that a needed task will never complete, so that another try of the work is of no use. */
export function isPermanent(error: unknown): boolean {
  return typeof error === 'object' && error !== null && lasting.has(error)
}

/** A task that does not fit now would not fit in another try of the work: what it holds is the same. */
function failed(error: unknown): never {
  throw isA2AError(error) && error.code === 'RateLimited' ? noted(error) : error
}

function absent(taskId: string): A2AError {
  return noted(new A2AError('TaskNotFound', `Task ${taskId}, which this one needs, was not found.`, { metadata: { taskId } }))
}

function notCompleted({ id: taskId, status: { state, message } }: Task): A2AError {
  const reason = message ? textOf(message) : ''
  const text = `Task ${taskId}, which this one needs, ${ENDS[state]}${reason === '' ? '.' : `: ${reason}`}`
  return noted(new A2AError('UnsupportedOperation', text, { metadata: { taskId, state } }))
}

function noted(error: A2AError): A2AError {
  lasting.add(error)
  return error
}

/**
 * Waits until all tasks that the work's message refers to (`referenceTaskIds`) have completed, and gives them as they are
 * then, in the order of the message. Throws what `work.completed` throws as soon as one will not complete, or does not fit
 * beside the others. Ids of no task of the caller's are passed over, as everywhere.
 */
export function prerequisites(work: Pick<WorkArguments, 'message' | 'referenceTasks' | 'unloadedTasks' | 'completed'>): Promise<Task[]> {
  const known = new Set([...work.referenceTasks.map(({ id }) => id), ...work.unloadedTasks])
  const taskIds = [...new Set(work.message.referenceTaskIds)].filter(taskId => known.has(taskId))
  return Promise.all(taskIds.map(taskId => work.completed(taskId)))
}

/**
 * For statecharts: an actor to invoke that waits for another task of the caller's, as `work.completed` does, and outputs it
 * as it completed: `invoke: { src: 'taskCompleted', input: { taskId }, onDone, onError }`. Without `onError` its error fails
 * the task, with a reason for the client.
 */
export const taskCompleted: PromiseActorLogic<Task, { taskId: string }> = fromPromise(async ({ input, self, system, signal }) =>
  hostOf(system).completedTask(input.taskId, familyOf(self), signal)
)
