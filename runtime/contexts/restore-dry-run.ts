import type { AnyMachineSnapshot } from 'xstate'
import { isA2AError } from '../../machines/protocol/errors.ts'
import { failureReasonOf } from '../../machines/task.machine.ts'
import { defaultLimits } from '../access/limits.ts'
import { liveBytes } from '../access/shares.ts'
import type { Agent } from '../agent/define-agent.ts'
import { agentOfVersion } from '../agent/earlier-versions.ts'
import { hasRunningLogic } from '../commits/actor-host.ts'
import { restoredTask } from '../snapshots/restored-task.ts'
import { restoreFault, type RestoredTask, type SavedTask } from '../snapshots/snapshot-text.ts'
import type { ContextKey, Store, TaskRow } from '../store/store.ts'
import { createActor } from '../xstate/library.ts'
import { isMachine, type PersistedSnapshot } from '../xstate/persisted-snapshot.ts'
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

/** The most bytes of snapshots in one context. */
const MOST_BYTES = liveBytes(defaultLimits).most.user

/**
 * Dry run of a restore of one stored task. Nothing is written, and of the author's code only `migrate` and the restore
 * of actors run.
 */
export function dryRunRestore(agent: Agent, row: OpenRow): RestoreOutlook {
  const { snapshot, ...others } = row
  const snapshotBytes = Buffer.byteLength(snapshot)
  try {
    const task = restoredTask(snapshotBytes > MOST_BYTES ? { ...others, snapshotBytes } : row, agent)
    return outlookOf(task, agent)
  } catch (error) {
    return { outlook: 'fails', reason: reasonFor(error) }
  }
}

/** The outcome that a restore of a prepared task would have. */
function outlookOf(task: RestoredTask, agent: Agent): RestoreOutlook {
  const { error, isMigrated, saved, row, earlierVersion } = task
  const own = agentOfVersion(agent, earlierVersion)
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
  return { outlook: isMigrated ? 'migrates' : 'ok' }
}

/** The reason that the client would read, and the message of an author's error in parentheses. */
export function reasonFor(error: unknown): string {
  const reason = failureReasonOf(error)
  const cause: unknown = isA2AError(error) ? error.cause : error
  return cause instanceof Error ? `${reason} (${cause.message})` : reason
}

/** The row of an open task. */
type OpenRow = TaskRow & { readonly snapshot: string }

/** A restore of one stored task that was only tried. */
interface TriedRestore extends RestoreOutlook {
  /** The version that stored it; `undefined` for a task from before versions existed. */
  readonly from: string | undefined
  /** The version with whose work it goes on. */
  readonly to: string
  /** Its work as it is stored, and as it would go on; none if it has not begun, and no `after` if it fails. */
  readonly before?: PersistedSnapshot
  readonly after?: PersistedSnapshot
  /** The restored chart. Its actors have not started. */
  readonly chart?: AnyMachineSnapshot
}

/** The stored row of an open task; `undefined` if it has ended. */
export async function readOpenRow(
  store: Pick<Store, 'loadContext' | 'readSnapshot'>,
  key: ContextKey,
  taskId: string
): Promise<OpenRow | undefined> {
  const row = (await store.loadContext(key, 0))?.tasks.find(task => task.taskId === taskId)
  if (!row) return undefined
  const snapshot = await store.readSnapshot(key, taskId)
  return snapshot === undefined ? undefined : { ...row, snapshot }
}

/**
 * Tries to restore a task, with the names and the `migrate` of the agent, and the work of its version. Nothing is
 * written, and of the author's code only `migrate` and the restore of actors run. Throws InternalError for a task that
 * a newer taskchart has stored.
 */
export function tryRestore(agent: Agent, row: OpenRow): TriedRestore {
  const task = restoredTask(row, agent)
  const { outlook, reason } = outlookOf(task, agent)
  const workOf = ({ children }: SavedTask) => children?.['work']?.snapshot
  const saved = JSON.parse(row.snapshot) as SavedTask
  const [before, after] = [workOf(saved), workOf(task.saved)]
  const { work } = agentOfVersion(agent, task.earlierVersion)
  const isRestored = after && outlook !== 'fails'
  return {
    outlook,
    ...(reason !== undefined && { reason }),
    from: saved.version,
    to: task.earlierVersion ?? agent.version,
    ...(before && { before }),
    ...(isRestored && { after }),
    ...(isRestored && typeof work === 'object' && isMachine(work) && { chart: restoredChart(work, after) })
  }
}

function restoredChart(work: Parameters<typeof createActor>[0], snapshot: PersistedSnapshot): AnyMachineSnapshot {
  // An actor that is never started restores its children, but has no effects.
  const actor = createActor(work, { snapshot: structuredClone(snapshot) as never, input: undefined })
  return actor.getSnapshot() as AnyMachineSnapshot
}
