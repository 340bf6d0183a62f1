import type { AnyMachineSnapshot } from 'xstate'
import { isA2AError } from '../../machines/protocol/errors.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import { failureReasonOf } from '../../machines/task.machine.ts'
import { defaultLimits } from '../access/limits.ts'
import { liveBytes } from '../access/shares.ts'
import type { Agent } from '../agent/define-agent.ts'
import { hasRunningLogic } from '../commits/actor-host.ts'
import { restoredTask } from '../snapshots/restored-task.ts'
import { restoreFault, type RestoredTask, type SavedTask } from '../snapshots/snapshot-text.ts'
import type { Scope } from '../store/rows.ts'
import type { ContextKey, Store, TaskPage, TaskCursor, TaskRow } from '../store/store.ts'
import { createActor } from '../xstate/library.ts'
import type { PersistedSnapshot } from '../xstate/persisted-snapshot.ts'
import { NOT_RESTARTED } from './errors.ts'

/**
 * Outcome of a restore. `ok`: the task continues. `migrates`: its chart is migrated first. `runs again`: its function
 * or generator is replayed, which cannot be tried without side effects. `fails`: the task fails.
 */
export type Outlook = 'ok' | 'migrates' | 'runs again' | 'fails'

/** Outcome of a restore with the present agent, and why it fails; only if it does. */
export interface RestoreOutlook {
  readonly outlook: Outlook
  readonly reason?: string
}

/** Outcome for one stored task with the present agent. */
export interface RestoreVerdict extends ContextKey, RestoreOutlook {
  readonly taskId: string
  readonly state: TaskState
  /** The version of the agent that stored it, if any. */
  readonly storedVersion?: string
}

/** The states of tasks that have not ended. */
const LIVE: readonly TaskState[] = [
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_AUTH_REQUIRED'
]

const PAGE = 100

/** The most bytes of snapshots in one context. */
const MOST_BYTES = liveBytes(defaultLimits).most.user

/**
 * Dry run of a restore of one stored task. Nothing is written, and of the author's code only `migrate` and the restore
 * of actors run.
 */
export function dryRunRestore(agent: Agent, row: TaskRow & { readonly snapshot: string }): RestoreOutlook {
  const { snapshot, ...others } = row
  const isTooLarge = snapshot.length > MOST_BYTES
  try {
    const task = restoredTask(isTooLarge ? { ...others, snapshotBytes: snapshot.length } : row, agent)
    const { chart: _, ...outlook } = outlookOf(task, agent)
    return outlook
  } catch (error) {
    return { outlook: 'fails', reason: reasonFor(error) }
  }
}

/**
 * The tasks of a scope that have not ended, without their history and artifacts, read page by page. One that changes its
 * state meanwhile may come twice, or not at all.
 */
export async function* openTasks(
  store: Pick<Store, 'listTasks'>,
  scope: Scope
): AsyncGenerator<TaskPage['tasks'][number], void, undefined> {
  for (const state of LIVE) {
    let after: TaskCursor | undefined
    do {
      const page: TaskPage = await store.listTasks(scope, {
        state,
        after,
        limit: PAGE,
        historyLength: 0,
        artifacts: false
      })
      yield* page.tasks
      after = page.next
    } while (after)
  }
}

/** How many tasks of a scope have not ended. */
export async function countOpenTasks(store: Pick<Store, 'listTasks'>, scope: Scope): Promise<number> {
  let count = 0
  for (const state of LIVE) count += (await store.listTasks(scope, { state, limit: 1 })).total
  return count
}

function verdictOf(key: ContextKey, { row, saved }: RestoredTask, { outlook, reason }: Tried): RestoreVerdict {
  const { version } = saved
  return {
    ...key,
    taskId: row.taskId,
    state: row.state,
    outlook,
    ...(reason !== undefined && { reason }),
    ...(version !== undefined && { storedVersion: version })
  }
}

/** A restore of one stored task that was only tried. */
export interface TriedRestore {
  readonly verdict: RestoreVerdict
  /** The version with whose work it goes on. */
  readonly version: string
  /** The text that is stored. */
  readonly text: string
  /** Its work as it is stored, and as it would be restored; `undefined` if it has none. */
  readonly before?: PersistedSnapshot
  readonly after?: PersistedSnapshot
  /** The restored chart, whose actors have not started. */
  readonly chart?: AnyMachineSnapshot
}

/**
 * Tries to restore one task, as {@link dryRunRestore} does. Gives `undefined` for a task that has ended meanwhile. Throws
 * what the store throws for damaged data, and InternalError for a task that a newer taskchart has stored.
 */
export async function tryRestore(
  agent: Agent,
  store: Pick<Store, 'loadContext' | 'readSnapshot'>,
  key: ContextKey,
  taskId: string
): Promise<TriedRestore | undefined> {
  const stored = await store.loadContext(key, 0)
  const found = stored?.tasks.find(row => row.taskId === taskId)
  const text = await store.readSnapshot(key, taskId)
  if (!found || text === undefined) return undefined
  const task = restoredTask({ ...found, snapshot: text }, agent)
  const tried = outlookOf(task, agent)
  const workOf = ({ children }: SavedTask) => children?.['work']?.snapshot
  const [before, after] = [workOf(JSON.parse(text) as SavedTask), workOf(task.saved)]
  return {
    verdict: verdictOf(key, task, tried),
    version: task.earlierVersion ?? agent.version,
    text,
    ...(before && { before }),
    ...(after && !task.error && { after }),
    ...(tried.chart && { chart: tried.chart })
  }
}

interface Tried extends RestoreOutlook {
  readonly chart?: AnyMachineSnapshot
}

function outlookOf(task: RestoredTask, agent: Agent): Tried {
  const { error, isMigrated, saved, row, earlierVersion = '' } = task
  const own = agent.earlier?.[earlierVersion] ?? agent
  if (error) return { outlook: 'fails', reason: reasonFor(error) }
  const work = saved.children?.['work']
  if (!work) return { outlook: 'ok' }
  const endsAtWork = own.recovery === 'fail' && row.wakeAtMs === 0
  if (!own.work || typeof own.work === 'function')
    return endsAtWork ? { outlook: 'fails', reason: NOT_RESTARTED } : { outlook: 'runs again' }
  // An actor that is never started restores its children, but has no effects.
  const actor = createActor(own.work, { snapshot: structuredClone(work.snapshot) as never, input: undefined })
  const fault = restoreFault(actor, work.snapshot)
  if (fault !== undefined) return { outlook: 'fails', reason: reasonFor(fault) }
  if (endsAtWork && hasRunningLogic(actor)) return { outlook: 'fails', reason: NOT_RESTARTED }
  return { outlook: isMigrated ? 'migrates' : 'ok', chart: actor.getSnapshot() as AnyMachineSnapshot }
}

/** The reason that the client would read, and the message of an author's error in parentheses. */
export function reasonFor(error: unknown): string {
  const reason = failureReasonOf(error)
  const cause: unknown = isA2AError(error) ? error.cause : error
  return cause instanceof Error ? `${reason} (${cause.message})` : reason
}
