import type { AnyActorRef } from 'xstate'
import type { DelayedEvent } from './delayed-events.ts'
import { FORMAT, stampOf } from './format.ts'
import { persistTask } from './persistence.ts'

interface Text {
  /** The snapshots that it was made of: of the task's actor and of all below it. */
  readonly snapshots: readonly unknown[]
  readonly text: string
}

/** The texts as which the tasks of a context are saved: made anew only when an actor of the task has changed. */
export class TaskTexts {
  readonly #texts = new Map<string, Text>()
  readonly #stamp: string

  /** `version`: the agent's, which goes with each text. */
  constructor(version: string) {
    this.#stamp = stampOf({ format: FORMAT, version })
  }

  /** The text of a task with the delayed events of its charts. Throws TypeError as {@link persistTask} does. */
  of(task: AnyActorRef, events: readonly DelayedEvent[]): string {
    const snapshots = snapshotsBelow(task)
    const known = this.#texts.get(task.id)
    if (known && events.length === 0 && isSame(known.snapshots, snapshots)) return known.text
    const text = persistTask(task, events, this.#stamp)
    if (events.length === 0) this.#texts.set(task.id, { snapshots, text })
    else this.#texts.delete(task.id)
    return text
  }

  /** Forgets a task that has ended. */
  delete(taskId: string): void {
    this.#texts.delete(taskId)
  }
}

function snapshotsBelow(actor: AnyActorRef, found: unknown[] = []): unknown[] {
  const snapshot = actor.getSnapshot() as { children?: Record<string, AnyActorRef> } | undefined
  found.push(snapshot)
  for (const child of Object.values(snapshot?.children ?? {})) snapshotsBelow(child, found)
  return found
}

function isSame(some: readonly unknown[], others: readonly unknown[]): boolean {
  return some.length === others.length && some.every((each, index) => each === others[index])
}
