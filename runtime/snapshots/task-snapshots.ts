import type { AnyActorRef } from 'xstate'
import { memoizeLast } from '../primitives/memoize-last.ts'
import type { DelayedEvent } from '../timers/delayed-events.ts'
import { FORMAT, persistTask, stampOf } from './snapshot-text.ts'

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
