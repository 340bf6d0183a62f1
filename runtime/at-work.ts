import type { AnyActorRef } from 'xstate'

/**
 * Whether something runs in an actor or below it, which would be lost if it left memory: logic that is no machine, has not
 * ended, and does not say by `isWaiting: true` in its snapshot that it only waits for a message or an alarm.
 */
export function isAtWork(actor: AnyActorRef): boolean {
  const { status, children, isWaiting } = actor.getSnapshot() as { status: string; children?: Record<string, AnyActorRef>; isWaiting?: boolean }
  if (status !== 'active') return false
  return children ? Object.values(children).some(isAtWork) : isWaiting !== true
}
