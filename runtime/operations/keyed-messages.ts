import { isDeepStrictEqual } from 'node:util'
import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { CancelTaskRequest, Message } from '../../machines/protocol/objects.ts'
import type { CallContext, ClientKey, KeyTarget, KeyToCancel } from '../access/call-context.ts'
import { clientKeyOf, type DeduplicationKey, type Scope, type SendRow } from '../store/rows.ts'
import { readTaskOrThrow } from '../streams/task-stream.ts'
import { TaskTail } from '../streams/task-tail.ts'
import type { Admitted } from './admission.ts'
import type { ShardSelector } from './cluster.ts'
import { type ChangeKind, runOnOwner } from './deliver.ts'
import type { OperationServices, PendingSends } from './dependencies.ts'
import { type MessageOutcome, routeMessage, type RouteOptions, withdraw } from './route-message.ts'

/** Entry of a key: its task, its answer without a task, or that its first message is being processed. */
export type KeyEntry = { readonly taskId: string } | { readonly reply: Message } | { readonly isPending: true }

/**
 * Finds the entry of a client's key; `undefined` if the key is unknown or expired. Only the node that processes the
 * first message with a key knows the key before its outcome.
 */
export async function findByKey(
  services: OperationServices,
  scope: Scope,
  name: string
): Promise<KeyEntry | undefined> {
  const isPending = services.pendingSends.get(pendingName(scope, clientKeyOf(name, 0, 0).key)) !== undefined
  return (await readRow(services, scope, name)) ?? (isPending ? { isPending } : undefined)
}

async function readRow({ store, clock }: OperationServices, scope: Scope, name: string): Promise<SendRow | undefined> {
  const atMs = clock.now()
  const row = await store.readSend(scope, clientKeyOf(name, atMs, 0).key)
  return row && row.expiresAtMs > atMs ? row : undefined
}

/** The target of a key; `undefined` if it has none, or if that was removed. The id of a task is its key. */
async function readTarget(services: OperationServices, scope: Scope, name: string): Promise<KeyTarget | undefined> {
  const row = await readRow(services, scope, name)
  if (row && 'reply' in row) {
    // Every reply of an agent has a contextId.
    const { contextId } = row.reply as Message & { contextId: string }
    return { reply: row.reply, contextId }
  }
  const taskId = row ? row.taskId : name
  const stored = await services.store.readTask(scope, taskId, { historyLength: 0, artifacts: false })
  return stored && { taskId, contextId: stored.task.contextId, state: stored.task.status.state }
}

/** The target of a key, and the address that a message with the key gets for it. */
interface KeyRoute {
  readonly target: KeyTarget | undefined
  readonly address: ReturnType<ClientKey['address']>
}

/** Sends a message with a key: again, if it is refused and its route has changed meanwhile. */
export async function sendByKey<T>(
  services: OperationServices,
  scope: Scope,
  key: ClientKey,
  send: (route: KeyRoute) => Promise<T>
): Promise<T> {
  const readRoute = () => readKeyRoute(services, scope, key)
  return sendAlong(await readRoute(), send, readRoute)
}

async function readKeyRoute(services: OperationServices, scope: Scope, key: ClientKey): Promise<KeyRoute> {
  const target = await readTarget(services, scope, key.name)
  return { target, address: key.address(target) }
}

async function sendAlong<T>(
  route: KeyRoute,
  send: (route: KeyRoute) => Promise<T>,
  readRoute: () => Promise<KeyRoute>
): Promise<T> {
  try {
    return await send(route)
  } catch (error) {
    if (!isA2AError(error) || error.code !== 'UnsupportedOperation') throw error
    const now = await readRoute()
    if (isDeepStrictEqual([nameOf(now.target), now.address], [nameOf(route.target), route.address])) throw error
    return sendAlong(now, send, readRoute)
  }
}

/** Routes a message with a key to its address. Messages with one key are routed one at a time. */
export function routeByKey(
  services: OperationServices,
  scope: Scope,
  message: Message,
  key: ClientKey,
  options: Omit<RouteOptions, 'send'>
): Promise<MessageOutcome> {
  const { clock, pendingSends } = services
  const send = clientKeyOf(key.name, clock.now(), key.storedMs)
  return oneAtATime(pendingSends, scope, send, () =>
    sendByKey(services, scope, key, ({ target, address }) => {
      const isStored = nameOf(target) !== key.name
      return routeMessage(services, scope, { ...message, ...address }, isStored ? { ...options, send } : options)
    })
  )
}

/** The id of a task, or of an answer. */
function nameOf(target: KeyTarget | undefined): string | undefined {
  return target && ('reply' in target ? target.reply.messageId : target.taskId)
}

/** The key of a message that another node has addressed, as JSON. */
export interface AddressedKey extends Pick<ClientKey, 'name' | 'storedMs'> {
  readonly targetName: string | undefined
}

/** The key of a message for another node. */
export function toAddressedKey({ name, storedMs }: ClientKey, { target }: KeyRoute): AddressedKey {
  return { name, storedMs, targetName: nameOf(target) }
}

/** The key of a message of another node. The message is refused if the key has another target than it had there. */
export function fromAddressedKey({ name, storedMs, targetName }: AddressedKey): ClientKey {
  const address: ClientKey['address'] = target => {
    if (nameOf(target) === targetName) return {}
    throw new A2AError('UnsupportedOperation', `The key ${name} has another task now. Send the message again.`)
  }
  return { name, storedMs, address }
}

/** A key whose target is to be canceled, as JSON. */
interface ScopedKeyToCancel extends KeyToCancel {
  readonly scope: Scope
  /** The context of its target, if it has one. */
  readonly contextId: string | undefined
}

/** Ends the negotiation of a key. Gives the id of the task to cancel; null if the key has no target. */
export async function withdrawByKey(
  services: OperationServices,
  { scope, connection, signal }: Admitted<CancelTaskRequest>,
  key: KeyToCancel
): Promise<string | null> {
  const target = await readTarget(services, scope, key.name)
  const request: ScopedKeyToCancel = { scope, ...key, contextId: target?.contextId }
  return runOnOwner(services, WITHDRAW, request, { connection, signal })
}

/** Ends the negotiation of a key, once the messages with the key have their outcome. */
export const WITHDRAW: ChangeKind<ScopedKeyToCancel, string | null> = {
  name: 'withdraw',
  placeOf: ({ scope, name, contextId }) =>
    contextId === undefined ? shardOfKey(scope, name) : { context: { ...scope, contextId } },
  isRepeatable: () => true,
  run: withdrawHere
}

function withdrawHere(
  services: OperationServices,
  { scope, name, storedMs, message }: ScopedKeyToCancel,
  connection?: CallContext['connection']
): Promise<string | null> {
  const { clock, pendingSends } = services
  const send = clientKeyOf(name, clock.now(), storedMs)
  return oneAtATime(pendingSends, scope, send, async () => {
    const target = await readTarget(services, scope, name)
    if (!target) return null
    if ('taskId' in target) return target.taskId
    return withdraw(services, { ...scope, contextId: target.contextId }, message, send, connection)
  })
}

/** The shard of the first message with a key, unless that names a context: all first messages of the key meet there. */
export function shardOfKey({ tenant, principal }: Scope, name: string): ShardSelector {
  return { text: JSON.stringify([tenant, principal, name, 'name']) }
}

/**
 * Processes a resent message once: it gets the outcome of the first, even if it arrives while the first is pending.
 * Another message with the same key is refused with IdempotencyConflict.
 */
export async function sendOnce(
  services: OperationServices,
  scope: Scope,
  send: DeduplicationKey,
  signal: AbortSignal | undefined,
  route: () => Promise<MessageOutcome>
): Promise<MessageOutcome> {
  return oneAtATime(
    services.pendingSends,
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

function pendingName({ tenant, principal }: Scope, key: string): string {
  return JSON.stringify([tenant, principal, key])
}

/** The outcome of the first message with this key; `undefined` if there was none. */
async function outcomeBefore(
  services: OperationServices,
  scope: Scope,
  send: DeduplicationKey,
  signal: AbortSignal | undefined
): Promise<MessageOutcome | undefined> {
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
