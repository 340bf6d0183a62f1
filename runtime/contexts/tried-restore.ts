import type { AnyMachineSnapshot } from 'xstate'
import type { Agent } from '../agent/define-agent.ts'
import { restoredTask } from '../snapshots/restored-task.ts'
import type { SavedTask } from '../snapshots/snapshot-text.ts'
import type { ContextKey, Store } from '../store/store.ts'
import { createActor } from '../xstate/library.ts'
import { isMachine, type PersistedSnapshot } from '../xstate/persisted-snapshot.ts'
import { outlookOf, type RestoreVerdict } from './restore-dry-run.ts'

/** A restore of one stored task that was only tried. */
export interface TriedRestore extends Pick<RestoreVerdict, 'outlook' | 'reason'> {
  /** The version that stored it; `undefined` for a task from before versions existed. */
  readonly from: string | undefined
  /** The version with whose work it goes on. */
  readonly to: string
  /** The text that is stored. */
  readonly text: string
  /** Its work as it is stored, and as it would go on; none if it has not begun, and no `after` if it fails. */
  readonly before?: PersistedSnapshot
  readonly after?: PersistedSnapshot
  /** The restored chart. Its actors have not started. */
  readonly chart?: AnyMachineSnapshot
}

/**
 * Tries to restore a task, with the names and the `migrate` of the agent, and the work of its version. Nothing is
 * written, and of the author's code only `migrate` and the restore of actors run. Gives `undefined` for a task that has
 * ended meanwhile. Throws InternalError for a task that a newer taskchart has stored, and what the store throws.
 */
export async function tryRestore(
  agent: Agent,
  store: Pick<Store, 'loadContext' | 'readSnapshot'>,
  key: ContextKey,
  taskId: string
): Promise<TriedRestore | undefined> {
  const stored = await store.loadContext(key, 0)
  const row = stored?.tasks.find(row => row.taskId === taskId)
  const text = await store.readSnapshot(key, taskId)
  if (!row || text === undefined) return undefined
  const task = restoredTask({ ...row, snapshot: text }, agent)
  const { outlook, reason } = outlookOf(task, agent)
  const workOf = ({ children }: SavedTask) => children?.['work']?.snapshot
  const saved = JSON.parse(text) as SavedTask
  const [before, after] = [workOf(saved), workOf(task.saved)]
  const { work } = agent.earlier?.[task.earlierVersion ?? ''] ?? agent
  const isRestored = after && outlook !== 'fails'
  return {
    outlook,
    ...(reason !== undefined && { reason }),
    from: saved.version,
    to: task.earlierVersion ?? agent.version,
    text,
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
