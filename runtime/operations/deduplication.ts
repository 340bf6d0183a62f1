import { A2AError } from '../../machines/protocol/errors.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import { taskNotFound } from '../contexts/errors.ts'
import type { ReleasingMap } from '../primitives/releasing-map.ts'
import type { DeduplicationKey } from '../store/rows.ts'
import type { Scope, Store } from '../store/store.ts'
import type { Routed } from './deliver.ts'

/** What became of a message: an answer without a task, or what the caller attached to the task. */
export type Outcome<T> = { message: Message } | { attached: T }

/** Sends under way, by scope and key: their fingerprints, and promises that settle when they have come to an end. */
export type PendingSends = ReleasingMap<{ readonly fingerprint: string; readonly end: Promise<unknown> }>

/**
 * Takes a message once: a repeated one, also one that comes while the first is under way, gets what became of the first.
 * Another message under the same key is refused with IdempotencyConflict.
 */
export async function sendOnce<T>(
  store: Store,
  underWay: PendingSends,
  scope: Scope,
  send: DeduplicationKey,
  place: () => Promise<Outcome<T>>,
  attach: (placed: Routed) => T
): Promise<Outcome<T>> {
  return oneAtATime(underWay, scope, send, () => repeatedOrPlaced(store, scope, send, place, attach))
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

async function repeatedOrPlaced<T>(
  store: Store,
  scope: Scope,
  send: DeduplicationKey,
  place: () => Promise<Outcome<T>>,
  attach: (placed: Routed) => T
): Promise<Outcome<T>> {
  const before = await store.readSend(scope, send.key)
  if (!before || before.expiresAtMs <= send.atMs) return place()
  checkSame(before.fingerprint, send)
  if ('reply' in before) return { message: before.reply }
  const { taskId } = before
  const stored = await store.readTask(scope, taskId, { historyLength: 0, artifacts: false })
  if (!stored) throw taskNotFound(taskId)
  const { task, generation } = stored
  const row = { taskId, generation, state: task.status.state }
  return { attached: attach({ key: { ...scope, contextId: task.contextId }, row, isRepeated: true }) }
}

function checkSame(fingerprint: string, send: DeduplicationKey): void {
  if (fingerprint === send.fingerprint) return
  throw new A2AError('IdempotencyConflict', 'Another message was sent under this messageId. Send this one under a messageId of its own.')
}
