import type { PromiseActorLogic } from 'xstate'
import type { Task } from '../machines/protocol/objects.ts'
import { familyOf, hostOf } from './actor-host.ts'
import { fromPromise } from './from-promise.ts'
import type { WorkArguments } from './work-arguments.ts'

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
