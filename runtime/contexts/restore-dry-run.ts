import { isA2AError } from '../../machines/protocol/errors.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import { failureReasonOf } from '../../machines/task.machine.ts'
import { defaultLimits } from '../access/limits.ts'
import { liveBytes } from '../access/shares.ts'
import type { Agent } from '../agent/define-agent.ts'
import { hasRunningLogic } from '../commits/actor-host.ts'
import { loadContext, restoredTask } from '../snapshots/restored-task.ts'
import { checkFormat, restoreFault, type RestoredTask } from '../snapshots/snapshot-text.ts'
import type { Scope } from '../store/rows.ts'
import type { ContextKey, Store, StoredContext, TaskPage, TaskCursor } from '../store/store.ts'
import { createActor } from '../xstate/library.ts'
import { NOT_RESTARTED } from './errors.ts'

/**
 * Outcome of a restore. `ok`: the task continues. `migrates`: its chart is migrated first. `runs again`: its function
 * or generator is replayed, which cannot be tried without side effects. `fails`: the task fails.
 */
export type Outlook = 'ok' | 'migrates' | 'runs again' | 'fails'

/** Outcome for one stored task with the present agent. */
export interface RestoreVerdict extends ContextKey {
  readonly taskId: string
  readonly state: TaskState
  readonly outlook: Outlook
  /** Why it fails; only if `outlook` is `fails`. */
  readonly reason?: string
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

/**
 * Dry run of a restore: gives a verdict on every task of these scopes that has not ended. Nothing is written, and of
 * the author's code only `migrate` and the restore of actors run. A task that cannot be read fails.
 */
export async function* dryRunRestore(
  agent: Agent,
  store: Pick<Store, 'listTasks' | 'loadContext' | 'readSnapshot'>,
  scopes: Iterable<Scope> | AsyncIterable<Scope>
): AsyncGenerator<RestoreVerdict, void, undefined> {
  const { most } = liveBytes(defaultLimits)
  for await (const scope of scopes) {
    const seen = new Set<string>()
    for (const state of LIVE) {
      for await (const {
        task: { id, contextId }
      } of liveTasks(store, scope, state)) {
        if (seen.has(contextId)) continue
        seen.add(contextId)
        const key = { tenant: scope.tenant, principal: scope.principal, contextId }
        try {
          yield* verdictsOn(agent, key, await loadContext(store, key, most.user))
        } catch (error) {
          yield { ...key, taskId: id, state, outlook: 'fails', reason: reasonFor(error) }
        }
      }
    }
  }
}

async function* liveTasks(
  store: Pick<Store, 'listTasks'>,
  scope: Scope,
  state: TaskState
): AsyncGenerator<TaskPage['tasks'][number]> {
  let after: TaskCursor | undefined
  do {
    const { tasks, next }: TaskPage = await store.listTasks(scope, {
      state,
      after,
      limit: PAGE,
      historyLength: 0,
      artifacts: false
    })
    yield* tasks
    after = next
  } while (after)
}

function verdictsOn(agent: Agent, key: ContextKey, stored: StoredContext | undefined): RestoreVerdict[] {
  if (!stored) return []
  checkFormat(JSON.parse(stored.snapshot) as object)
  return stored.tasks.map(row => {
    const task = restoredTask(row, agent)
    const { version } = task.saved
    return {
      ...key,
      taskId: row.taskId,
      state: row.state,
      ...outlookOf(task, agent),
      ...(version !== undefined && { storedVersion: version })
    }
  })
}

/** What a restore would do with a task that is prepared for it. */
export function outlookOf(task: RestoredTask, agent: Agent): Pick<RestoreVerdict, 'outlook' | 'reason'> {
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
