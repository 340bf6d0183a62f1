import type { ActorRow, Step } from '../../feed.ts'

/** The lane of the client. */
export const CLIENT = 'client'

/** The lane of what the runtime does on its own: it starts tasks, watches deadlines, recovers work. */
export const RUNTIME = 'runtime'

/** What a client says, by the events that it becomes. */
const SAID: ReadonlySet<string> = new Set(['request.received', 'message.received', 'message.steered', 'message.queued', 'task.cancel', 'authorization.received'])

/**
 * Who sent a step's event: an actor by its sessionId, or a lane of its own. What comes from outside the actors is the client's
 * or the runtime's; it also carries what a work says to its task, and what a task passes on to its work, or a work to what it invokes.
 */
export function senderOf({ kind, from, to, event: { type }, taskId }: Step, actors: readonly ActorRow[]): string {
  if (kind !== 'event') return to
  if (from !== undefined) return from
  const receiver = actors.find(({ sessionId }) => sessionId === to)
  if (receiver?.kind === 'work' || receiver?.kind === 'child') return receiver.parent ?? RUNTIME
  if (type.startsWith('work.')) return actors.findLast(actor => actor.kind === 'work' && actor.taskId === taskId)?.sessionId ?? RUNTIME
  return SAID.has(type) ? CLIENT : RUNTIME
}
