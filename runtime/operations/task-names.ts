import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import type { CancelTaskRequest } from '../../machines/protocol/requests.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import type { CallContext, TaskName } from '../access/call-context.ts'
import { readTaskOrThrow } from '../contexts/errors.ts'
import { type DeduplicationKey, taskNameKeyOf, type Scope } from '../store/rows.ts'
import { TaskTail } from '../streams/task-tail.ts'
import type { Admitted } from './admission.ts'
import type { ShardSelector } from './cluster.ts'
import { runOnOwner } from './deliver.ts'
import type { OperationServices, PendingSends } from './dependencies.ts'
import { otherContext, type MessageOutcome, routeMessage, type RouteOptions, withdraw } from './route-message.ts'
import { cancelTask } from './tasks.ts'

/** The target of a name: its newest task, or the agent's answer if there was no task. */
export type NamedTask = { readonly taskId: string } | { readonly reply: Message }

/** The same, or that the first message of the name has no answer yet. */
export type LookedUp = NamedTask | { readonly isAnswered: false }

/**
 * The target of a client's name. Only the node that processes the first message of a name knows of it before its
 * answer.
 */
export async function lookUpName(
  services: OperationServices,
  scope: Scope,
  name: string
): Promise<LookedUp | undefined> {
  const isPending = isUnderWay(services.pendingSends, scope, taskNameKeyOf(name, 0, 0).key)
  return (await readNamed(services, scope, name)) ?? (isPending ? { isAnswered: false } : undefined)
}

/** The task or answer that a client's name refers to; `undefined` if it is unknown or expired. */
async function readNamed(
  { store, clock }: OperationServices,
  scope: Scope,
  name: string
): Promise<NamedTask | undefined> {
  const atMs = clock.now()
  const row = await store.readSend(scope, taskNameKeyOf(name, atMs, 0).key)
  return row && row.expiresAtMs > atMs ? row : undefined
}

/**
 * Routes a message to the task of a name, if that has not ended. Otherwise the message goes to a context: that of the
 * last task, if there was one. The task that it opens gets the name in the same commit. Messages for one name are
 * routed one at a time. A task id made by the server is not a name: it keeps its task.
 */
export async function routeByClientName(
  services: OperationServices,
  scope: Scope,
  message: Message,
  { name, continuesAfter }: TaskName,
  terms: Omit<RouteOptions, 'send'>
): Promise<MessageOutcome> {
  const { clock, limits, pendingSends } = services
  const send = taskNameKeyOf(name, clock.now(), limits.taskNamesRememberedMs)
  const open = (more: Partial<Message> = {}) =>
    routeMessage(services, scope, { ...message, ...more }, { ...terms, send })
  return oneAtATime(pendingSends, scope, send, async () => {
    const named = await readNamed(services, scope, name)
    const taskId = named && 'taskId' in named ? named.taskId : name
    const last = named && 'reply' in named ? answered(named.reply) : await taskFor(services, scope, taskId)
    if (!last) return open()
    if (!named) return routeMessage(services, scope, { ...message, taskId }, terms)
    const { contextId, isOver } = last
    if (message.contextId !== undefined && message.contextId !== contextId) throw otherContext(name)
    const begin = () => {
      if ('reply' in named) return open({ contextId })
      continuesAfter?.(taskId)
      return open({ contextId, referenceTaskIds: [taskId] })
    }
    if (isOver) return begin()
    try {
      return await open({ taskId })
    } catch (error) {
      // The task may have ended since it was read.
      if (
        !isA2AError(error) ||
        error.code !== 'UnsupportedOperation' ||
        !(await taskFor(services, scope, taskId))?.isOver
      )
        throw error
      return begin()
    }
  })
}

/** A name whose task or negotiation is to be canceled. `message` opens the task that ends a negotiation. */
export interface NameToCancel {
  readonly scope: Scope
  readonly name: string
  readonly message: Message
}

/**
 * Cancels the task of a name. A negotiation without a task ends with one that is canceled. Anything else counts as the
 * id of a task.
 */
export async function cancelNamed(
  services: OperationServices,
  admitted: Admitted<CancelTaskRequest>,
  message: Message
): Promise<Task> {
  const { params, scope, connection, signal } = admitted
  const request: NameToCancel = { scope, name: params.id, message }
  const place = await placeOfName(services, scope, params.id)
  const id = await runOnOwner(services, { name: 'withdraw', place, request, isRepeatable: true, signal }, () =>
    withdrawHere(services, request, connection)
  )
  return cancelTask(services, { ...admitted, params: { ...params, id } })
}

/**
 * Ends the negotiation of a name on this node, after the answer to a message that is being negotiated. Gives the id of
 * the task to cancel.
 */
export function withdrawHere(
  services: OperationServices,
  { scope, name, message }: NameToCancel,
  connection?: CallContext['connection']
): Promise<string> {
  const { clock, limits, pendingSends } = services
  const send = taskNameKeyOf(name, clock.now(), limits.taskNamesRememberedMs)
  return oneAtATime(pendingSends, scope, send, async () => {
    const named = await readNamed(services, scope, name)
    if (!named || 'taskId' in named) return named?.taskId ?? name
    const { contextId } = answered(named.reply)
    return withdraw(services, { ...scope, contextId }, message, send, connection)
  })
}

/** The node of a name: that of its task or its context, else one that all messages of the name have. */
export async function placeOfName(services: OperationServices, scope: Scope, name: string): Promise<ShardSelector> {
  const named = await readNamed(services, scope, name)
  if (named)
    return 'taskId' in named
      ? { scope, taskId: named.taskId }
      : { context: { ...scope, contextId: answered(named.reply).contextId } }
  if (await taskFor(services, scope, name)) return { scope, taskId: name }
  return { text: JSON.stringify([scope.tenant, scope.principal, name, 'name']) }
}

/** The predecessor of a message under a name: a task, or an answer without a task. */
interface Last {
  readonly contextId: string
  readonly isOver: boolean
}

async function taskFor({ store }: OperationServices, scope: Scope, taskId: string): Promise<Last | undefined> {
  const stored = await store.readTask(scope, taskId, { historyLength: 0, artifacts: false })
  return stored && { contextId: stored.task.contextId, isOver: isTerminal(stored.task.status.state) }
}

/** Every reply of an agent has a contextId. */
function answered(reply: Message): Last {
  return { contextId: (reply as Message & { contextId: string }).contextId, isOver: true }
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
async function oneAtATime<T>(
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
function isUnderWay(underWay: PendingSends, scope: Scope, key: string): boolean {
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
