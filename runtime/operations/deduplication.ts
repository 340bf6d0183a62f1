import { A2AError } from '../../machines/protocol/errors.ts'
import { readTaskOrThrow } from '../contexts/errors.ts'
import type { ReleasingMap } from '../primitives/collections.ts'
import type { DeduplicationKey } from '../store/rows.ts'
import type { Scope } from '../store/store.ts'
import { TaskTail } from '../streams/task-tail.ts'
import type { OperationServices } from './dependencies.ts'
import type { Outcome } from './route-message.ts'

/** Pending messages by scope and key: their fingerprints, and promises that settle when they are done. */
export type PendingSends = ReleasingMap<{ readonly fingerprint: string; readonly end: Promise<unknown> }>

/**
 * Processes a resent message once: it gets the outcome of the first, even if it arrives while the first is pending. Another message
 * with the same key is refused with IdempotencyConflict.
 */
export async function sendOnce(
  services: OperationServices,
  scope: Scope,
  send: DeduplicationKey,
  signal: AbortSignal | undefined,
  route: () => Promise<Outcome>
): Promise<Outcome> {
  return oneAtATime(
    services.sendsUnderWay,
    scope,
    send,
    async () => (await outcomeBefore(services, scope, send, signal)) ?? route()
  )
}

/** Runs messages of the same key one at a time. */
export async function oneAtATime<T>(
  underWay: PendingSends,
  scope: Scope,
  send: DeduplicationKey,
  run: () => Promise<T>
): Promise<T> {
  const name = pendingName(scope, send.key)
  for (let first = underWay.get(name); first; first = underWay.get(name)) {
    checkSame(first.fingerprint, send)
    await first.end.catch(() => {})
  }
  const end = run()
  underWay.set(name, { fingerprint: send.fingerprint, end })
  return end.finally(() => underWay.delete(name))
}

/** Whether a message with this key is being processed on this node. */
export function isUnderWay(underWay: PendingSends, scope: Scope, key: string): boolean {
  return underWay.get(pendingName(scope, key)) !== undefined
}

function pendingName({ tenant, principal }: Scope, key: string): string {
  return JSON.stringify([tenant, principal, key])
}

/** The outcome of the first message with this key; `undefined` if there was none. */
async function outcomeBefore(
  services: OperationServices,
  scope: Scope,
  send: DeduplicationKey,
  signal: AbortSignal | undefined
): Promise<Outcome | undefined> {
  const { store } = services
  const before = await store.readSend(scope, send.key)
  if (!before || before.expiresAtMs <= send.atMs) return undefined
  checkSame(before.fingerprint, send)
  if ('reply' in before) return { message: before.reply }
  const { taskId } = before
  const tail = new TaskTail(services, scope, taskId, { signal })
  try {
    const { task, generation } = await readTaskOrThrow(store, scope, taskId)
    return { key: { ...scope, contextId: task.contextId }, row: { taskId, generation, state: task.status.state }, tail }
  } catch (error) {
    tail.end()
    throw error
  }
}

function checkSame(fingerprint: string, send: DeduplicationKey): void {
  if (fingerprint === send.fingerprint) return
  throw new A2AError(
    'IdempotencyConflict',
    'Another message was sent with this messageId. Send this one with a new messageId.'
  )
}
