import type { Arrival } from '../../machines/negotiation-events.ts'
import { A2AError, invalidParams } from '../../machines/protocol/errors.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import type { RequestDetails } from '../../machines/protocol/requests.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import type { CallContext } from '../access/call-context.ts'
import { notThisMessage, inputViolations } from '../authoring/input-schema.ts'
import type { Turn } from '../commits/turn.ts'
import { taskNotFound } from '../contexts/errors.ts'
import type { OutsideTerms } from '../contexts/external-events.ts'
import type { LiveContext } from '../contexts/live-context.ts'
import { readProposal } from '../negotiation/proposals.ts'
import type { ContextKey, Scope, StoredTask, TaskEvent } from '../store/store.ts'
import { applyEvent, applyMessage, newTaskRecord } from '../store/task-record.ts'
import type { Outcome } from './deduplication.ts'
import { withLostRaceRetry, deliver, movedOn, type Opening, type Routed } from './deliver.ts'
import type { OperationServices } from './dependencies.ts'

/** On what terms a message is sent. `extensions` are those of the author's that its client has activated, `details` the metadata and configuration of the request. */
export interface SendTerms extends OutsideTerms {
  readonly extensions: readonly string[]
  readonly details: RequestDetails | undefined
  readonly connection?: CallContext['connection']
}

/**
 * Brings a client's message to where it belongs (§3.4): to the task that it addresses, or to its context, where it is
 * answered or opens a task. `attach` runs when the outcome is committed, before any later event of the task is told.
 */
export async function routeMessage<T>(
  services: OperationServices,
  scope: Scope,
  message: Message,
  terms: SendTerms,
  attach: (placed: Routed) => T
): Promise<Outcome<T>> {
  const { taskId } = message
  if (taskId !== undefined) return { attached: await continueTask(services, scope, { ...message, taskId }, terms, attach) }
  const { contexts, ids, opening, negotiation, clock, metering } = services
  const violations = opening ? inputViolations(opening, message) : []
  if (violations.length > 0) throw notThisMessage(violations)
  const arrived = negotiation && readProposal(message, negotiation, clock.now())
  const { contextId } = message
  const key = keyOf(scope, contextId ?? ids())
  const arrival = { message, taskId: ids(), arrived }
  return metering.opening(scope, arrival.taskId, async () => {
    const asked = (live: LiveContext) => {
      contexts.makeRoomIn(live)
      return request(live, key, arrival, terms, attach)
    }
    if (contextId === undefined) return asked(contexts.create(key, terms.connection))
    return withLostRaceRetry(contexts, key, asked, terms.connection)
  })
}

/** A message that addresses no task, and the id that its task is to have. */
interface Request {
  readonly message: Message
  readonly taskId: string
  readonly arrived: Arrival | undefined
}

function request<T>(
  live: LiveContext,
  key: ContextKey,
  { message, taskId, arrived }: Request,
  { send, webhook, extensions, details, trace }: SendTerms,
  attach: (placed: Routed) => T
): Promise<Outcome<T>> {
  return new Promise((resolve, reject) => {
    live.receive(
      { callId: `${taskId}?`, taskId, message, extensions, ...(details && { details }), arrived, trace, ...((send ?? webhook) && { isOnce: true }) },
      {
        send,
        webhook,
        answered: reply => resolve({ message: reply }),
        opened: (taskId, turn) => {
          const row = turn.rowOf(taskId)
          if (row) resolve({ attached: attach({ key, row, opened: () => openingOf(turn, key, taskId) }) })
        },
        failed: reject
      }
    )
  })
}

async function continueTask<T>(
  { store, contexts }: OperationServices,
  scope: Scope,
  message: Message & { taskId: string },
  terms: SendTerms,
  attach: (placed: Routed) => T
): Promise<T> {
  const { taskId } = message
  const stored = await store.readTask(scope, taskId, { historyLength: 0, artifacts: false })
  if (!stored) throw taskNotFound(taskId)
  const { contextId, status } = stored.task
  if (message.contextId !== undefined && message.contextId !== contextId) throw otherContext(taskId)
  if (isTerminal(status.state)) throw refusal(stored, terms)
  const { details } = terms
  const event = { type: 'message.received' as const, taskId, message: { ...message, contextId }, ...(details && { request: details }) }
  const outcome = await withLostRaceRetry(contexts, keyOf(scope, contextId), async live => {
    await live.caughtUp(taskId)
    contexts.makeRoomIn(live)
    return deliver(live, event, terms, placed => ({ value: attach(placed) }))
  }, terms.connection)
  if (outcome) return outcome.value
  const now = await store.readTask(scope, taskId, { historyLength: 0, artifacts: false })
  throw now ? refusal(now, terms) : taskNotFound(taskId)
}

function keyOf({ tenant, principal }: Scope, contextId: string): ContextKey {
  return { tenant, principal, contextId }
}

/** A task that this turn opened. */
function openingOf(turn: Turn, key: ContextKey, taskId: string): Opening {
  const record = newTaskRecord(key, taskId)
  const later: TaskEvent[] = []
  for (const entry of turn.log) {
    if (entry.taskId !== taskId) continue
    if ('message' in entry) applyMessage(record, entry)
    else if (later.length > 0 || begins(entry)) later.push(entry)
    else applyEvent(record, entry)
  }
  return { record, later }
}

function begins({ update }: TaskEvent): boolean {
  return 'statusUpdate' in update && update.statusUpdate.status.state === 'TASK_STATE_WORKING'
}

/** The error for a message that names a task, and another context than that of the task. */
export function otherContext(taskId: string): A2AError {
  return invalidParams({ field: 'message.contextId', description: `must be the context of task ${taskId}, or be left out` })
}

function refusal({ task, generation }: StoredTask, { ifGeneration = generation }: OutsideTerms): A2AError {
  return ifGeneration === generation ? takesNoMessage(task) : movedOn(task.id)
}

function takesNoMessage({ id, status, contextId = '' }: Task): A2AError {
  const name = status.state.replace('TASK_STATE_', '').toLowerCase().replace('_', '-')
  const why = isTerminal(status.state)
    ? `is ${name} and takes no more messages. Start a new task: send the message with contextId ${contextId} and referenceTaskIds ["${id}"], without a taskId.`
    : `is ${name} and does not take this message. Wait until it asks for input, answer what it asks, or cancel it.`
  return new A2AError('UnsupportedOperation', `Task ${id} ${why}`, { metadata: { taskId: id, state: status.state } })
}
