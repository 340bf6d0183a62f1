import type { Actor, AnyActorRef, SnapshotFrom } from 'xstate'
import { BARGAINING, isEmpty, type ContextInput, type contextMachine } from '../../machines/context.machine.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { memoizeLast } from '../primitives/collections.ts'
import type { DelayedEvent } from '../timers/delayed-events.ts'
import type { PersistedSnapshot } from '../xstate/persisted-snapshot.ts'
import type { RestoredTask } from './restored-task.ts'

/** The form in which this version of taskchart stores the actors of its own two charts. Texts without a format have the first. */
export const FORMAT = 1

/** Members that go with many texts, as the beginning of each. */
export function stampOf(members: Readonly<Record<string, unknown>>): string {
  return `${JSON.stringify(members).slice(0, -1)},`
}

/** The JSON text of an object, with the members of a stamp before its own. */
export function stamped(stamp: string, text: string): string {
  return stamp + text.slice(1)
}

/** Throws InternalError for what a later taskchart has stored in a form that this one does not know. */
export function checkFormat({ format = FORMAT }: { readonly format?: unknown }): void {
  if (typeof format === 'number' && format <= FORMAT) return
  throw new A2AError('InternalError', `This context was stored by a newer taskchart, in format ${String(format)}, and this one knows format ${FORMAT} at the most. It was left as it is: update taskchart.`)
}

/** What goes with the text of each context. */
const STAMP = stampOf({ format: FORMAT })

/** The text of every context in which nothing is negotiated: its tasks are rows of their own. */
const PLAIN = stamped(STAMP, JSON.stringify({ status: 'active', value: 'idle', historyValue: {}, context: { negotiations: [] }, children: {} }))

/**
 * A task's actor as JSON text, with the delayed events of its charts, and a stamp of `stampOf`. Throws TypeError for what
 * JSON cannot hold, and for actors that could not be found again after a restart, because their logic has no name in the
 * chart's setup.
 */
export function persistTask(actor: AnyActorRef, delayed: readonly DelayedEvent[], stamp: string): string {
  const snapshot = actor.getPersistedSnapshot() as PersistedSnapshot
  checkNames(snapshot)
  return stamped(stamp, JSON.stringify(delayed.length === 0 ? snapshot : { ...snapshot, delayed }))
}

/** A context's actor as JSON text, with its negotiations and without its tasks: what it knows of those it is told again by their rows. */
export function persistContext(actor: Actor<typeof contextMachine>): string {
  const snapshot = actor.getSnapshot()
  const children: Record<string, AnyActorRef | undefined> = snapshot.children
  const { negotiations, isBargaining } = snapshot.context
  if (negotiations.length === 0 && !isBargaining) return PLAIN
  // Requests to a negotiation that lasts have no actors of their own.
  const ids = isBargaining ? [BARGAINING, ...negotiations] : negotiations
  const kept = ids.flatMap(id => (children[id] ? [[id, children[id]]] : []))
  return stamped(STAMP, JSON.stringify(actor.logic.getPersistedSnapshot({ ...snapshot, children: Object.fromEntries(kept) })))
}

/**
 * A stored context as XState restores it, with its tasks, and for the agent as it is now: a value of its own each time, for
 * XState writes into it. Throws InternalError for one that a newer taskchart has stored.
 */
export function restoredContext(text: string, tasks: readonly RestoredTask[], input: ContextInput): SnapshotFrom<typeof contextMachine> {
  const { format, ...context } = JSON.parse(text)
  checkFormat({ format })
  context.context = { ...context.context, ...input, tasks: tasks.map(({ row }) => row.taskId) }
  context.value = isEmpty(context.context) ? 'idle' : 'busy'
  for (const { row, text } of tasks) {
    const { delayed: _, format: __, version: ___, ...snapshot } = JSON.parse(text)
    context.children[row.taskId] = { src: 'task', snapshot }
  }
  return context
}

/** The error with which a restored actor, or one below it, has begun; `undefined` if all goes on. */
export function restoreFault(actor: AnyActorRef): unknown {
  const { status, error, children = {} } = actor.getSnapshot() as { status: string; error: unknown; children?: Record<string, AnyActorRef> }
  if (status === 'error') return error
  return Object.values(children).map(restoreFault).find(fault => fault !== undefined)
}

function checkNames({ children = {} }: PersistedSnapshot): void {
  for (const [id, { src, snapshot }] of Object.entries(children)) {
    if (typeof src !== 'string') {
      throw new TypeError(`The actor ${id} has logic without a name. Name it in setupWork({ actors }) and spawn it by its name.`)
    }
    checkNames(snapshot)
  }
}

/** A context actor's snapshot as text, and the context that it was made of. */
export interface SavedContext {
  readonly context: unknown
  readonly snapshot: string
}

/** The context actor's snapshot as text, made anew only when the actor changed since `saved`. */
export function savedContext(root: Actor<typeof contextMachine>, saved: SavedContext | undefined): SavedContext {
  const { context } = root.getSnapshot()
  return saved?.context === context ? saved : { context, snapshot: persistContext(root) }
}

/** An actor, and the snapshot that it had. */
interface Seen {
  readonly actor: AnyActorRef
  readonly snapshot: unknown
}

interface Text {
  /** What it was made of: the task's actor and all below it. */
  readonly seen: readonly Seen[]
  readonly text: string
}

/** The stamp of texts, for the version of an agent. */
const stampFor = memoizeLast(version => stampOf({ format: FORMAT, version }))

/** The texts as which the tasks of a context are saved: made anew only when an actor of the task has changed. */
export class SnapshotCache {
  readonly #texts = new Map<string, Text>()
  readonly #stamp: string

  /** `version`: the agent's, which goes with each text. */
  constructor(version: string) {
    this.#stamp = stampFor(version)
  }

  /** The text of a task with the delayed events of its charts. Throws TypeError as {@link persistTask} does. */
  of(task: AnyActorRef, events: readonly DelayedEvent[]): string {
    const known = this.#texts.get(task.id)
    if (known && events.length === 0 && known.seen.every(isAsSeen)) return known.text
    const text = persistTask(task, events, this.#stamp)
    if (events.length === 0) this.#texts.set(task.id, { seen: seenBelow(task), text })
    else this.#texts.delete(task.id)
    return text
  }

  /** Forgets a task that has ended. */
  delete(taskId: string): void {
    this.#texts.delete(taskId)
  }
}

function seenBelow(actor: AnyActorRef, seen: Seen[] = []): Seen[] {
  const snapshot = actor.getSnapshot() as { children?: Record<string, AnyActorRef> } | undefined
  seen.push({ actor, snapshot })
  for (const child of Object.values(snapshot?.children ?? {})) seenBelow(child, seen)
  return seen
}

/** Which children an actor has is part of its snapshot: where none has changed, there are no others. */
function isAsSeen({ actor, snapshot }: Seen): boolean {
  return actor.getSnapshot() === snapshot
}
