import type { Actor, AnyActorRef, SnapshotFrom } from 'xstate'
import { BARGAINING, isEmpty, type ContextInput, type contextMachine } from '../../machines/context.machine.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import type { TaskContext } from '../../machines/task.machine.ts'
import type { SnapshotIdentity, TaskText } from '../commits/task-ledger.ts'
import type { DelayedEvent, SavedTimers } from '../commits/task-timers.ts'
import { appendItem, NONE } from '../primitives/collections.ts'
import type { RestorableRow } from '../store/store.ts'
import type { PersistedSnapshot } from '../xstate/persisted-snapshot.ts'

/** Format number of stored actors of taskchart's own charts. Texts without a format have format 1. */
export const FORMAT = 1

/** JSON text of common members, to be put before the members of other texts. */
function stampOf(members: Readonly<Record<string, unknown>>): string {
  return `${JSON.stringify(members).slice(0, -1)},`
}

/** The JSON text of an object, with the members of a stamp first. */
export function withStamp(stamp: string, text: string): string {
  return stamp + text.slice(1)
}

/** Throws InternalError for data of a newer taskchart in an unknown format. */
export function checkFormat({ format = FORMAT }: { readonly format?: unknown }): void {
  if (typeof format === 'number' && format <= FORMAT) return
  throw new A2AError(
    'InternalError',
    `This context was stored by a newer taskchart, in format ${String(format)}, and this one knows formats up to ${FORMAT}. It is unchanged. Update taskchart.`
  )
}

/** Stamp of the text of each context. */
const STAMP = stampOf({ format: FORMAT })

/** The text of every context without a negotiation, since tasks have their own rows. */
const PLAIN = withStamp(
  STAMP,
  JSON.stringify({ status: 'active', value: 'idle', historyValue: {}, context: { negotiations: [] }, children: {} })
)

/**
 * A task's actor as JSON text, with the delayed events of its charts and a stamp of `stampOf`. Throws TypeError for
 * values that JSON cannot express, and for actors that a restart could not find, because their logic has no name in the
 * chart's setup.
 */
export function persistTask(actor: AnyActorRef, delayed: readonly DelayedEvent[], stamp: string): string {
  const snapshot = actor.getPersistedSnapshot() as PersistedSnapshot
  checkNames(snapshot)
  return withStamp(stamp, JSON.stringify(delayed.length === 0 ? snapshot : { ...snapshot, delayed }))
}

/** A context's actor as JSON text, with its negotiations. Its tasks are restored from their own rows. */
export function persistContext(actor: Actor<typeof contextMachine>): string {
  const snapshot = actor.getSnapshot()
  const children: Record<string, AnyActorRef | undefined> = snapshot.children
  const { negotiations, isBargaining } = snapshot.context
  if (negotiations.length === 0 && !isBargaining) return PLAIN
  // Requests to a lasting negotiation have no actors.
  const ids = isBargaining ? [BARGAINING, ...negotiations] : negotiations
  const kept = ids.flatMap(id => (children[id] ? [[id, children[id]]] : []))
  return withStamp(
    STAMP,
    JSON.stringify(actor.logic.getPersistedSnapshot({ ...snapshot, children: Object.fromEntries(kept) }))
  )
}

/**
 * A stored context with its tasks as a snapshot for XState and the present agent. Each call gives a new object, because
 * XState writes to it. Throws InternalError for a context that a newer taskchart has stored.
 */
export function restoredContext(
  text: string,
  tasks: readonly RestoredTask[],
  input: ContextInput
): SnapshotFrom<typeof contextMachine> {
  const { format, ...context } = JSON.parse(text)
  checkFormat({ format })
  context.context = { ...context.context, ...input, tasks: tasks.map(({ row }) => row.taskId) }
  context.value = isEmpty(context.context) ? 'idle' : 'busy'
  for (const { row, text, earlierVersion } of tasks) {
    const { delayed: _, format: __, version: ___, definition: ____, ...snapshot } = JSON.parse(text)
    context.children[row.taskId] = { src: taskActorOf(earlierVersion), snapshot }
  }
  return context
}

/** The name of the task chart with the work of a version of the agent; by default with its work now. */
export function taskActorOf(version?: string): string {
  return version === undefined ? 'task' : `task of version ${version}`
}

/**
 * The error that kept an actor or one below it from being restored; `undefined` if there is none. One that had failed
 * before is restored as such.
 */
export function restoreFault(actor: AnyActorRef, stored: PersistedSnapshot | undefined): unknown {
  const {
    status,
    error,
    children = {}
  } = actor.getSnapshot() as { status: string; error: unknown; children?: Record<string, AnyActorRef> }
  if (status === 'error') return stored?.status === 'error' ? undefined : error
  return Object.entries(children)
    .map(([id, child]) => restoreFault(child, stored?.children?.[id]?.snapshot))
    .find(fault => fault !== undefined)
}

function checkNames({ children }: PersistedSnapshot): void {
  for (const id in children) {
    const child = children[id]
    if (typeof child?.src !== 'string') {
      throw new TypeError(
        `The actor ${id} has logic without a name. Name it in setupWork({ actors }) and spawn it by its name.`
      )
    }
    checkNames(child.snapshot)
  }
}

/** A context actor's snapshot as text, and the `context` that it was made from. */
export interface SavedContext {
  readonly context: unknown
  readonly snapshot: string
}

/** The context actor's snapshot as text; reuses `saved` if the actor has not changed. */
export function savedContext(root: Actor<typeof contextMachine>, saved: SavedContext | undefined): SavedContext {
  const { context } = root.getSnapshot()
  return saved?.context === context ? saved : { context, snapshot: persistContext(root) }
}

/**
 * The stamps of the texts of tasks: the version of the agent, and the digest of its definition if that is stored. Each
 * is made once.
 */
export class TaskStamps {
  readonly #definitionOf: (version: string) => string | undefined
  readonly #stamps = new Map<string, string>()

  constructor(definitionOf: (version: string) => string | undefined) {
    this.#definitionOf = definitionOf
  }

  /** The stamp of a task that goes on with the work of this version. */
  stampOf(version: string): string {
    const known = this.#stamps.get(version)
    if (known !== undefined) return known
    const definition = this.#definitionOf(version)
    const stamp = stampOf({ format: FORMAT, version, ...(definition !== undefined && { definition }) })
    this.#stamps.set(version, stamp)
    return stamp
  }
}

/**
 * The text of a task with the delayed events of its charts; `known` if no actor of the task has changed since. `stamp`:
 * of {@link TaskStamps}. Throws TypeError as {@link persistTask} does.
 */
export function taskTextOf(
  task: AnyActorRef,
  events: readonly DelayedEvent[],
  stamp: string,
  known: TaskText | undefined
): TaskText {
  if (known?.seen && events.length === 0 && isAsSeen(known.seen)) return known
  const text = persistTask(task, events, stamp)
  return { text, bytes: Buffer.byteLength(text), seen: events.length === 0 ? seenAt(task) : undefined }
}

function seenAt(actor: AnyActorRef): SnapshotIdentity {
  const snapshot = actor.getSnapshot() as { children?: Record<string, AnyActorRef> } | undefined
  const children = snapshot?.children
  let below: readonly SnapshotIdentity[] = NONE
  for (const id in children) below = appendItem(below, seenAt(children[id] as AnyActorRef))
  return { actor, snapshot, below }
}

/** An actor's children are part of its snapshot, so an unchanged snapshot has no new ones. */
function isAsSeen({ actor, snapshot, below }: SnapshotIdentity): boolean {
  return actor.getSnapshot() === snapshot && below.every(isAsSeen)
}

/** A stored task, migrated if need be, and checked for its work. */
export interface RestoredTask {
  readonly row: RestorableRow
  readonly saved: SavedTask
  /** JSON text for XState to restore; without the work if that cannot be resumed. */
  readonly text: string
  /** Whether another version of the agent stored it, whose work the agent does not have. */
  readonly isOther: boolean
  /** The version that stored it, if it goes on with the work of that version. */
  readonly earlierVersion?: string
  /** Whether the author's `migrate` has converted it. */
  readonly isMigrated: boolean
  /** Why its work cannot be resumed. */
  readonly error?: A2AError
}

/** A stored task: its actor, its timers, and the version of the agent that stored it. */
export type SavedTask = PersistedSnapshot &
  SavedTimers & {
    readonly context: TaskContext
    readonly version?: string
    readonly format?: number
    /** The digest of the definition of the agent that stored it. */
    readonly definition?: string
  }
