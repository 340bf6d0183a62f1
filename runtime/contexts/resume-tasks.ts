import type { Actor, AnyActorRef } from 'xstate'
import { errorType } from '../../machines/xstate-names.ts'
import { hasRunningLogic } from '../commits/actor-host.ts'
import type { TaskLedger } from '../commits/task-ledger.ts'
import { renewedTimers, type TaskTimers } from '../commits/task-timers.ts'
import { restoreFault, type RestoredTask } from '../snapshots/snapshot-text.ts'
import { startRestored } from '../xstate/actor-system.ts'
import type { ContextServices, ContextLogic } from './dependencies.ts'
import { tooManyBytes, tooManyEvents } from './errors.ts'
import type { WorkHost } from './work-host.ts'

/** The parts of a context whose tasks are resumed. Its actors have not started. */
export interface ResumedContext {
  readonly root: Actor<ContextLogic>
  readonly host: WorkHost
  readonly ledger: TaskLedger
  readonly timers: TaskTimers
  readonly services: ContextServices
  /** Whether the context was in memory before in this process, so that its tasks need no recovery. */
  readonly wasHere: boolean
}

/** Starts the actors of a context, and resumes its stored tasks. A task that cannot be resumed fails. */
export function resumeTasks(tasks: readonly RestoredTask[], context: ResumedContext): void {
  for (const task of tasks) prepare(task, context)
  startRestored(context.root)
  for (const task of tasks) resume(task, context)
  context.timers.resume(tasks.map(task => ({ taskId: task.row.taskId, saved: withTimers(task, context) })))
}

/** Before the actors start: adds a task to the ledger, and holds its effects back if it has to be recovered. */
function prepare(restored: RestoredTask, { root, host, ledger, services, wasHere }: ResumedContext): void {
  const { row, saved, isOther, error } = restored
  const { taskId, generation, state, statusTime = '', wakeAtMs, bytes = 0 } = row
  ledger.open(taskId, { generation, state, statusTime, bytes, snapshotBytes: Buffer.byteLength(row.snapshot ?? '') })
  host.noteRestored(restored)
  const actor = actorOf(root, taskId)
  const task = actor?.getSnapshot()
  const isToStart = !error && task?.status === 'active' && task.can({ type: 'task.start', taskId })
  const isToRecover = !error && (wasHere || services.recoveryQueue.concerns(wakeAtMs))
  // Timers of another version's chart may start again, and be due at once.
  const runsByItself =
    isToStart || isOther || isDue(saved, services.clock.now()) || (actor !== undefined && hasRunningLogic(actor))
  if (actor && isToRecover && runsByItself) host.recovery.expect(taskId)
  if (isToStart) host.startWork(taskId)
}

/** After the actors have started: fails a task that cannot continue, and recovers it if needed. */
function resume(task: RestoredTask, context: ResumedContext): void {
  const {
    host,
    wasHere,
    services: {
      limits: { eventsPerTask, taskBytes }
    }
  } = context
  const { taskId, generation, bytes = 0 } = task.row
  failUnrestored(task, context)
  // Stores it under the present version, with its renewed timers.
  if (task.isOther) host.markChanged(taskId)
  // The limits may have been higher when the task was stored.
  if (generation >= eventsPerTask) host.failTask(taskId, tooManyEvents(eventsPerTask))
  else if (bytes > taskBytes) host.failTask(taskId, tooManyBytes(taskBytes, bytes))
  const actor = actorOf(context.root, taskId)
  if (!host.recovery.isExpected(taskId)) return
  if (wasHere) host.recovery.goOn(taskId)
  else host.recovery.recover(task, actor !== undefined && hasRunningLogic(actor))
}

/** Fails a task whose actor or work could not be restored. */
function failUnrestored({ row: { taskId }, saved, error: misfit }: RestoredTask, { root, host }: ResumedContext): void {
  const task = actorOf(root, taskId)
  const error = task && (misfit ?? restoreFault(task, saved))
  if (!error) return
  host.failTask(taskId, error)
  // A task actor with an error receives no events, so the context handles it as a crashed child.
  if (task.getSnapshot().status === 'error') root.send({ type: errorType(taskId), actorId: taskId, error })
}

/** A task's saved state; timers of another version's charts are renewed. */
function withTimers(
  { row: { taskId }, saved, isOther }: RestoredTask,
  { root, host, services: { clock } }: ResumedContext
): RestoredTask['saved'] {
  const task = isOther ? actorOf(root, taskId) : undefined
  if (!task) return saved
  try {
    return { ...saved, delayed: renewedTimers(task, saved.delayed ?? [], clock.now()) }
  } catch (error) {
    host.failTask(taskId, error)
    return saved
  }
}

/** Whether a delayed event of a task's charts is due, whose transition may have crashed the process. */
function isDue({ delayed = [] }: RestoredTask['saved'], nowMs: number): boolean {
  return delayed.some(({ dueMs }) => dueMs <= nowMs)
}

function actorOf(root: Actor<ContextLogic>, taskId: string): AnyActorRef | undefined {
  return root.getSnapshot().children[taskId]
}
