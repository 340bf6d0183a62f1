import type { Actor, AnyActorRef, SnapshotFrom } from 'xstate'
import type { ContextLogic } from './context-logic.ts'
import type { DelayedEvent } from './delayed-events.ts'
import type { StoredContext } from './store.ts'
import type { SavedTimers } from './task-timers.ts'

interface PersistedActor {
  readonly src: unknown
  readonly snapshot: { readonly children?: Record<string, PersistedActor> }
}

/**
 * A task's actor as JSON text, with the delayed events of its charts. Throws TypeError for what JSON cannot hold, and for
 * actors that could not be found again after a restart, because their logic has no name in the chart's setup.
 */
export function persistTask(actor: AnyActorRef, delayed: readonly DelayedEvent[]): string {
  const snapshot = actor.getPersistedSnapshot() as PersistedActor['snapshot']
  checkNames(snapshot)
  return JSON.stringify(delayed.length === 0 ? snapshot : { ...snapshot, delayed })
}

/** A context's actor as JSON text, with its negotiations and without its tasks, which are rows of their own. */
export function persistContext(actor: Actor<ContextLogic>): string {
  const snapshot = actor.getSnapshot()
  const negotiations = snapshot.context.negotiations.map(id => [id, snapshot.children[id]])
  return JSON.stringify(actor.logic.getPersistedSnapshot({ ...snapshot, children: Object.fromEntries(negotiations) }))
}

/** A stored context as XState restores it: a value of its own each time, for XState writes into it. */
export function restoredContext({ snapshot, tasks }: StoredContext): SnapshotFrom<ContextLogic> {
  const context = JSON.parse(snapshot)
  for (const task of tasks) {
    const { delayed: _, ...snapshot } = JSON.parse(task.snapshot)
    context.children[task.taskId] = { src: 'task', snapshot }
  }
  return context
}

/** A task as it was saved: its actor, and what is to happen to it by itself. */
export type SavedTask = PersistedActor['snapshot'] & SavedTimers

/** Reads a task's text. */
export function savedTask(text: string): SavedTask {
  return JSON.parse(text)
}

/** Why a restored actor, or one below it, is not what was stored; `undefined` if all is as it was. */
export function restoreFault(actor: AnyActorRef, { children = {} }: PersistedActor['snapshot']): unknown {
  const snapshot = actor.getSnapshot()
  if (snapshot.status === 'error') return snapshot.error
  for (const [id, stored] of Object.entries(children)) {
    const child: AnyActorRef | undefined = snapshot.children[id]
    const fault = child ? restoreFault(child, stored.snapshot) : new TypeError(`The chart no longer has the logic ${String(stored.src)} of its actor ${id}.`)
    if (fault) return fault
  }
  return undefined
}

function checkNames({ children = {} }: PersistedActor['snapshot']): void {
  for (const [id, { src, snapshot }] of Object.entries(children)) {
    if (typeof src !== 'string') {
      throw new TypeError(`The actor ${id} has logic without a name. Name it in setupWork({ actors }) and spawn it by its name.`)
    }
    checkNames(snapshot)
  }
}
