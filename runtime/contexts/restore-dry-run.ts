import { isA2AError } from '../../machines/protocol/errors.ts'
import { failureReasonOf } from '../../machines/task.machine.ts'
import { defaultLimits } from '../access/limits.ts'
import { liveBytes } from '../access/shares.ts'
import type { Agent } from '../agent/define-agent.ts'
import { hasRunningLogic } from '../commits/actor-host.ts'
import { restoredTask } from '../snapshots/restored-task.ts'
import { restoreFault, type RestoredTask } from '../snapshots/snapshot-text.ts'
import type { TaskRow } from '../store/store.ts'
import { createActor } from '../xstate/library.ts'
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
export function dryRunRestore(agent: Agent, row: TaskRow & { readonly snapshot: string }): RestoreOutlook {
  const { snapshot, ...others } = row
  const isTooLarge = snapshot.length > MOST_BYTES
  try {
    const task = restoredTask(isTooLarge ? { ...others, snapshotBytes: snapshot.length } : row, agent)
    return outlookOf(task, agent)
  } catch (error) {
    return { outlook: 'fails', reason: reasonFor(error) }
  }
}

/** What a restore would do with a task that is prepared for it. */
export function outlookOf(task: RestoredTask, agent: Agent): RestoreOutlook {
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
  return { outlook: isMigrated ? 'migrates' : 'ok' }
}

/** The reason that the client would read, and the message of an author's error in parentheses. */
export function reasonFor(error: unknown): string {
  const reason = failureReasonOf(error)
  const cause: unknown = isA2AError(error) ? error.cause : error
  return cause instanceof Error ? `${reason} (${cause.message})` : reason
}
