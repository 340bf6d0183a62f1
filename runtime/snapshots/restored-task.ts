import type { AnyStateMachine, ContextFrom, SnapshotFrom } from 'xstate'
import { isObject, toJson } from '../../machines/protocol/codec/json.ts'
import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import { jsonLoss } from '../primitives/json.ts'
import { killPoint } from '../primitives/kill-points.ts'
import type { ContextKey, RestorableRow, Store, StoredContext } from '../store/store.ts'
import type { WorkFunction, WorkGenerator } from '../work/function-work.ts'
import { misfit, type PersistedSnapshot } from '../xstate/persisted-snapshot.ts'
import { namesSince, renamedTask, type Renamed } from './renames.ts'
import { checkFormat, type RestoredTask, type SavedTask } from './snapshot-text.ts'

const cannot = 'This task cannot be resumed with the present agent:'

type Work = WorkFunction | WorkGenerator | AnyStateMachine

/** The members of an agent that a restore uses. */
interface RestoringAgent {
  readonly work?: Work
  readonly version: string
  readonly renamed?: Renamed
  readonly migrate?: AnyMigrate
  readonly earlier?: Readonly<Record<string, { readonly work: Work }>>
}

/**
 * Prepares a stored task for a restore: finds the work of its version, or renames what the agent has renamed and calls
 * its `migrate`. Then checks that the task fits its work. Throws InternalError for a task that a newer taskchart has
 * stored.
 */
export function restoredTask(row: RestorableRow, agent: RestoringAgent): RestoredTask {
  if (row.snapshot === undefined) return unread(row)
  const saved: SavedTask = JSON.parse(row.snapshot)
  checkFormat(saved)
  const { version = '' } = saved
  const earlier = agent.earlier?.[version]
  const isOther = !earlier && saved.version !== agent.version
  try {
    const now = isOther ? migratedTask(saved, agent) : saved
    checkFit(now, earlier ? { ...earlier, version } : agent)
    const isMigrated = now !== saved
    const text = isMigrated ? JSON.stringify(now) : row.snapshot
    return { row, saved: now, text, isOther, isMigrated, ...(earlier && { earlierVersion: version }) }
  } catch (cause) {
    const error = isA2AError(cause)
      ? cause
      : new A2AError('InvalidAgentResponse', `${cannot} its stored work is not a statechart.`, { cause })
    return {
      row,
      saved,
      text: JSON.stringify({ ...saved, children: {} }),
      isOther,
      isMigrated: false,
      error,
      ...(earlier && { earlierVersion: version })
    }
  }
}

/** A task whose snapshot was not read, as a submitted task with an error. */
function unread(row: RestorableRow): RestoredTask {
  const saved: SavedTask = {
    status: 'active',
    value: { active: 'submitted' },
    historyValue: {},
    context: { taskId: row.taskId, contextId: '', queue: [], restarts: [] },
    children: {}
  }
  const error = new A2AError(
    'RateLimited',
    'This task cannot be resumed: the open tasks of its context have more stored bytes than are loaded for one context.'
  )
  return { row, saved, text: JSON.stringify(saved), isOther: false, isMigrated: false, error }
}

/** A task that another version has stored, with the names of now and converted; itself if nothing changes it. */
function migratedTask(saved: SavedTask, agent: RestoringAgent): SavedTask {
  const names = namesSince(saved.version, agent)
  const converted = convertedTask(names ? renamedTask(saved, names) : saved, agent)
  if (converted !== saved) killPoint('before migration')
  return converted
}

function convertedTask(saved: SavedTask, { version, migrate }: RestoringAgent): SavedTask {
  const work = saved.children?.['work']
  if (!migrate || !work || !('value' in work.snapshot)) return saved
  const snapshot = migrated(
    migrate,
    { version: saved.version, snapshot: work.snapshot as Record<string, unknown> },
    version
  )
  return { ...saved, children: { ...saved.children, work: { ...work, snapshot } } }
}

function checkFit({ children = {}, version: stored }: SavedTask, { work: present, version }: RestoringAgent): void {
  const { work } = children
  if (!work) return
  const misses = present
    ? typeof present === 'function'
      ? functionMisfit(work.snapshot)
      : misfit(present, work.snapshot)
    : 'the agent has no work'
  if (misses === undefined) return
  const then =
    stored === version
      ? `under the same version, ${version}`
      : `by ${stored === undefined ? 'an agent without a version' : `version ${stored}`}, and this is version ${version}`
  throw new A2AError('InvalidAgentResponse', `${cannot} ${misses}. It was stored ${then}.`)
}

function functionMisfit(snapshot: PersistedSnapshot): string | undefined {
  return 'value' in snapshot ? 'the work was a statechart, and is none now' : undefined
}

/** Bytes of snapshots in one read. A larger snapshot is read alone. */
const BYTES_AT_ONCE = 8 * 1024 * 1024

/**
 * Loads a context, with up to this many bytes of its tasks' snapshots, in several reads. Tasks that do not fit have no
 * snapshot.
 */
export async function loadContext(
  store: Pick<Store, 'loadContext' | 'readSnapshot'>,
  key: ContextKey,
  bytes: number
): Promise<StoredContext | undefined> {
  const stored = await store.loadContext(key, Math.min(bytes, BYTES_AT_ONCE))
  if (!stored || stored.tasks.every(({ snapshot }) => snapshot !== undefined)) return stored
  let left = bytes - snapshotBytes(stored)
  const tasks: RestorableRow[] = []
  for (const row of stored.tasks) {
    if (row.snapshot !== undefined || row.snapshotBytes > left) {
      tasks.push(row)
      continue
    }
    left -= row.snapshotBytes
    const snapshot = await store.readSnapshot(key, row.taskId)
    if (snapshot !== undefined) tasks.push({ ...row, snapshot })
  }
  return { ...stored, tasks }
}

/** Bytes of the snapshots that were read. */
export function snapshotBytes({ tasks }: StoredContext): number {
  return tasks.reduce((sum, { snapshot = '' }) => sum + Buffer.byteLength(snapshot), 0)
}

type ChartsByVersion = Readonly<Record<string, AnyStateMachine>>

/** A chart as XState persists it. */
type StoredChart<Chart extends AnyStateMachine> = {
  readonly status: 'active'
  readonly value: SnapshotFrom<Chart>['value']
  readonly context: ContextFrom<Chart>
  /** The states to which its history leads, by the ids of history states. */
  readonly historyValue?: Readonly<Record<string, readonly { readonly id: string }[]>>
  /** Its actors by their ids. */
  readonly children?: Readonly<Record<string, { readonly src: string; readonly snapshot: unknown }>>
}

/**
 * A stored statechart: `snapshot` is XState's persisted snapshot, a copy that you may change. `version` is the agent's
 * version that stored it; `undefined` for a snapshot from before versions existed.
 */
interface Stored<Version, Snapshot> {
  readonly version: Version
  readonly snapshot: Snapshot
}

/** A stored statechart of any version. */
export type StoredWork = Stored<string | undefined, Record<string, unknown>>

type StoredOf<Before> = [Before] extends [never]
  ? StoredWork
  : Before extends AnyStateMachine
    ? Stored<string | undefined, StoredChart<Before>>
    : Before extends ChartsByVersion
      ? { [Version in keyof Before]: Stored<Version, StoredChart<Before[Version]>> }[keyof Before]
      : never

/**
 * Converts a statechart that another version has stored into a snapshot for the present version. With the types of both
 * charts it is `Migrate<typeof before, typeof now>`, or by version
 * `Migrate<{ '1': typeof first; '2': typeof second }, typeof now>`.
 */
export type Migrate<Before extends AnyStateMachine | ChartsByVersion = never, Now extends AnyStateMachine = never> = (
  stored: StoredOf<Before>
) => [Now] extends [never] ? unknown : StoredChart<Now>

/** A `Migrate` of any charts: as a method, its argument may have the types of these. */
export type AnyMigrate = { migrate(stored: StoredWork): unknown }['migrate']

/**
 * Calls an author's `migrate`. Throws InvalidAgentResponse if it throws, or does not return the snapshot of an active
 * chart.
 */
function migrated(migrate: AnyMigrate, stored: StoredWork, version: string): Record<string, unknown> {
  const given = snapshotBy(migrate, stored, version)
  if (isObject(given) && given['status'] === 'active' && isStateValue(given['value']) && isObject(given['context']))
    return { historyValue: {}, children: {}, ...given }
  throw new A2AError(
    'InvalidAgentResponse',
    `${fromTo(stored.version, version)} failed: migrate has to return a snapshot { status: 'active', value, context, children }.`
  )
}

/** The stored and the present version of a task, in words. */
function fromTo(stored: string | undefined, present: string): string {
  return `The migration of this task from ${stored === undefined ? 'no version' : `version ${stored}`} to version ${present}`
}

function snapshotBy(migrate: AnyMigrate, stored: StoredWork, version: string): unknown {
  try {
    const given = migrate({ version: stored.version, snapshot: structuredClone(stored.snapshot) }) ?? null
    const loss = jsonLoss(given, 'what migrate returns', 'kept')
    if (loss === undefined) return toJson(given)
    throw new A2AError('InvalidAgentResponse', `${fromTo(stored.version, version)} failed: ${loss}`)
  } catch (cause) {
    throw isA2AError(cause)
      ? cause
      : new A2AError('InvalidAgentResponse', `${fromTo(stored.version, version)} failed: migrate threw an error.`, {
          cause
        })
  }
}

function isStateValue(value: unknown): boolean {
  return typeof value === 'string' || isObject(value)
}
