import { A2AError } from '../../machines/protocol/errors.ts'
import { taskNotFound } from '../contexts/errors.ts'
import type { ReleasingMap } from '../primitives/collections.ts'
import type { DeduplicationKey } from '../store/rows.ts'
import type { Scope } from '../store/store.ts'
import { TaskTail } from '../streams/task-tail.ts'
import type { OperationServices } from './dependencies.ts'
import type { Outcome } from './route-message.ts'

/** Sends under way, by scope and key: their fingerprints, and promises that settle when they have come to an end. */
export type PendingSends = ReleasingMap<{ readonly fingerprint: string; readonly end: Promise<unknown> }>

/**
 * Takes a message once: a repeated one, also one that comes while the first is under way, gets what became of the first.
 * Another message under the same key is refused with IdempotencyConflict.
 */
export async function sendOnce(services: OperationServices, scope: Scope, send: DeduplicationKey, signal: AbortSignal | undefined, route: () => Promise<Outcome>): Promise<Outcome> {
  return oneAtATime(services.sendsUnderWay, scope, send, async () => (await outcomeBefore(services, scope, send, signal)) ?? route())
}

/** Does what is to be done with a send when those of the same key that came before have come to an end. */
export async function oneAtATime<T>(underWay: PendingSends, scope: Scope, send: DeduplicationKey, run: () => Promise<T>): Promise<T> {
  const name = JSON.stringify([scope.tenant, scope.principal, send.key])
  for (let first = underWay.get(name); first; first = underWay.get(name)) {
    checkSame(first.fingerprint, send)
    await first.end.catch(() => {})
  }
  const end = run()
  underWay.set(name, { fingerprint: send.fingerprint, end })
  return end.finally(() => underWay.delete(name))
}

/** What became of a message that was taken before; `undefined` if it was not. */
async function outcomeBefore(services: OperationServices, scope: Scope, send: DeduplicationKey, signal: AbortSignal | undefined): Promise<Outcome | undefined> {
  const { store } = services
  const before = await store.readSend(scope, send.key)
  if (!before || before.expiresAtMs <= send.atMs) return undefined
  checkSame(before.fingerprint, send)
  if ('reply' in before) return { message: before.reply }
  const { taskId } = before
  const tail = new TaskTail(services, scope, taskId, { signal })
  try {
    const stored = await store.readTask(scope, taskId, { historyLength: 0, artifacts: false })
    if (!stored) throw taskNotFound(taskId)
    const { task, generation } = stored
    return { key: { ...scope, contextId: task.contextId }, row: { taskId, generation, state: task.status.state }, tail }
  } catch (error) {
    tail.end()
    throw error
  }
}

function checkSame(fingerprint: string, send: DeduplicationKey): void {
  if (fingerprint === send.fingerprint) return
  throw new A2AError('IdempotencyConflict', 'Another message was sent under this messageId. Send this one under a messageId of its own.')
}
