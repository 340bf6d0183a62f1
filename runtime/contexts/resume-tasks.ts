import type { Actor, AnyActorRef } from 'xstate'
import { hasRunningLogic } from '../commits/actor-host.ts'
import type { TaskLedger } from '../commits/task-ledger.ts'
import type { RestoredTask } from '../snapshots/restored-task.ts'
import { restoreFault } from '../snapshots/snapshot-text.ts'
import { renewedTimers } from '../timers/renewed-timers.ts'
import type { TaskTimers } from '../timers/task-timers.ts'
import type { ContextHost } from './context-host.ts'
import type { ContextLogic } from './context-logic.ts'
import type { ContextServices } from './dependencies.ts'
import { tooManyBytes, tooManyEvents } from './errors.ts'

/** The parts of a context that take up its tasks. Its actors have not started. */
export interface TakingUp {
  readonly root: Actor<ContextLogic>
  readonly host: ContextHost
  readonly ledger: TaskLedger
  readonly timers: TaskTimers
  readonly services: ContextServices
  /** Whether the context was in memory before in this process, so that nothing in it has survived an end of it. */
  readonly wasHere: boolean
}

/** Starts the actors of a context, and has its stored tasks go on from where they were, or end as failed if they cannot. */
export function resumeTasks(tasks: readonly RestoredTask[], context: TakingUp): void {
  for (const task of tasks) expect(task, context)
  context.root.start()
  for (const task of tasks) goOn(task, context)
  context.timers.resume(tasks.map(task => ({ taskId: task.row.taskId, saved: withTimers(task, context) })))
}

/** Before the actors start: has a task known, and the author's code in it run when it may. */
function expect({ row, saved, isOther, error }: RestoredTask, { root, host, ledger, services, wasHere }: TakingUp): void {
  const { taskId, generation, state, wakeAtMs, bytes = 0 } = row
  ledger.open(taskId, { generation, state, bytes, snapshotBytes: row.snapshot?.length ?? 0 })
  const actor = actorOf(root, taskId)
  const task = actor?.getSnapshot()
  const isToStart = !error && task?.status === 'active' && task.can({ type: 'task.start', taskId })
  const isToRecover = !error && (wasHere || services.recoveryQueue.concern(wakeAtMs))
  // Timers of another version's chart may begin anew, and be due at once.
  const runsByItself = isToStart || isOther || isDue(saved, services.clock.now()) || (actor !== undefined && hasRunningLogic(actor))
  if (actor && isToRecover && runsByItself) host.recovery.expect(taskId)
  if (isToStart) host.afterCommit({ taskId, run: () => host.startTask(taskId) })
}

/** When the actors have started. */
function goOn(task: RestoredTask, context: TakingUp): void {
  const { host, wasHere, services: { limits: { eventsPerTask, taskBytes } } } = context
  const { taskId, generation, bytes = 0 } = task.row
  failUnrestored(task, context)
  // From now on it is stored under the present version, with the timers that begin now.
  if (task.isOther) host.noteMove(taskId)
  // The limit was higher when the task was last here.
  if (generation >= eventsPerTask) host.failTask(taskId, tooManyEvents(eventsPerTask))
  else if (bytes > taskBytes) host.failTask(taskId, tooManyBytes(taskBytes))
  const actor = actorOf(context.root, taskId)
  if (!host.recovery.isExpected(taskId)) return
  if (wasHere) host.recovery.goOn(taskId)
  else host.recovery.recover(task, actor !== undefined && hasRunningLogic(actor))
}

/** Ends a task as failed whose actor, or whose work, could not be restored from what was stored. */
function failUnrestored({ row: { taskId }, error: misfit }: RestoredTask, { root, host }: TakingUp): void {
  const task = actorOf(root, taskId)
  const error = task && (misfit ?? restoreFault(task))
  if (!error) return
  host.failTask(taskId, error)
  // A task whose own actor is broken hears nothing: the context lets go of it, as of every child that breaks.
  if (task.getSnapshot().status === 'error') root.send({ type: `xstate.error.actor.${taskId}`, actorId: taskId, error })
}

/** What is saved of a task's timers, or what that means for the charts of another version. */
function withTimers({ row: { taskId }, saved, isOther }: RestoredTask, { root, host, services: { clock } }: TakingUp): RestoredTask['saved'] {
  const task = isOther ? actorOf(root, taskId) : undefined
  if (!task) return saved
  try {
    return { ...saved, delayed: renewedTimers(task, saved.delayed ?? [], clock.now()) }
  } catch (error) {
    host.failTask(taskId, error)
    return saved
  }
}

/** Whether a delayed event of a task's charts is due: what its transition runs may have ended the process before. */
function isDue({ delayed = [] }: RestoredTask['saved'], nowMs: number): boolean {
  return delayed.some(({ dueMs }) => dueMs <= nowMs)
}

function actorOf(root: Actor<ContextLogic>, taskId: string): AnyActorRef | undefined {
  return root.getSnapshot().children[taskId]
}
