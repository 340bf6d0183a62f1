import type { AnyActorRef } from 'xstate'
import type { Message } from '../machines/protocol/parts.ts'
import type { Send } from './sends.ts'

/** An event from outside for one task. */
export type OutsideEvent = { type: 'task.cancel'; taskId: string } | { type: 'message.received'; taskId: string; message: Message }

/** On what terms a task is to take an event. */
export interface OutsideTerms {
  /** Only while the task's newest event has this generation. */
  readonly ifGeneration?: number | undefined
  /** What to remember a message by, if it is not to be taken twice. */
  readonly send?: Send | undefined
}

/** What a task made of an event: took it, did not, or was not at the generation asked for. */
export type Reception = 'taken' | 'refused' | 'stale'

/** Whether a task takes an event now; a message also has to be one that its work takes. */
export function takes(task: AnyActorRef, event: OutsideEvent): boolean {
  const snapshot = task.getSnapshot()
  if (snapshot.status !== 'active' || !snapshot.can(event)) return false
  return event.type !== 'message.received' || workTakes(snapshot.children.work, event)
}

/** A chart says itself what it can take. One whose guards throw takes the message, and fails by it. */
function workTakes(work: AnyActorRef | undefined, event: OutsideEvent): boolean {
  const snapshot = work?.getSnapshot()
  try {
    return !snapshot?.can || snapshot.can(event)
  } catch {
    return true
  }
}
