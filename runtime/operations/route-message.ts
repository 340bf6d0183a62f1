import type { Arrival, ContextRequest } from '../../machines/negotiation-events.ts'
import { A2AError, invalidParams } from '../../machines/protocol/errors.ts'
import type { Message, RequestDetails, Task } from '../../machines/protocol/objects.ts'
import { isTerminal, stateText } from '../../machines/protocol/states.ts'
import { QUESTION } from '../../machines/protocol/uris.ts'
import type { CallContext } from '../access/call-context.ts'
import { notThisMessage, inputViolations } from '../authoring/input-schema.ts'
import type { Turn } from '../commits/commit-pipeline.ts'
import { questionIn } from '../commits/task-ledger.ts'
import type { LiveContext } from '../contexts/context.ts'
import type { EventOptions } from '../contexts/external-events.ts'
import { readProposal } from '../negotiation/negotiation.ts'
import type { Scope } from '../store/rows.ts'
import type { ContextKey, StoredTask, TaskRow } from '../store/store.ts'
import { readTaskOrThrow } from '../streams/task-stream.ts'
import { TaskTail } from '../streams/task-tail.ts'
import { withLostRaceRetry, deliverEvent, generationMismatch } from './deliver.ts'
import type { OperationServices } from './dependencies.ts'

/**
 * Terms of a message. `extensions`: the author's extensions that the client has activated. `details`: metadata and
 * configuration of the request.
 */
export interface RouteOptions extends EventOptions {
  readonly extensions: readonly string[]
  readonly details: RequestDetails | undefined
  readonly connection?: CallContext['connection']
  readonly signal: AbortSignal | undefined
  readonly releaseRead?: (() => void) | undefined
  /** In a cluster: the shard of a context that the message opens. */
  readonly shard?: number | undefined
}

/** A message that reached a task. */
export interface RoutedMessage {
  readonly key: ContextKey
  /** The task after the turn that handled the message. */
  readonly row: TaskRow
  /** Follows the task from before that turn. The caller has to start or end it. */
  readonly tail: TaskTail
  /** The turn, if the message opened the task in it. */
  readonly opened?: Pick<Turn, 'log'>
  /**
   * The task after the turn of a message that continued it, as the node of its context read it: a large one without
   * artifacts and history.
   */
  readonly continued?: StoredTask
}

/** Outcome of a message: an answer without a task, or the task that it reached. */
export type MessageOutcome = { readonly message: Message } | RoutedMessage

/**
 * Routes a client's message (§3.4) to the task that it addresses, else to its context, where it is answered or opens a
 * task. Resolves when the outcome is committed.
 */
export function routeMessage(
  services: OperationServices,
  scope: Scope,
  message: Message,
  options: RouteOptions
): Promise<MessageOutcome> {
  const { taskId } = message
  const named = questionNamedBy(message)
  if (taskId !== undefined) return continueTask(services, scope, { ...message, taskId }, options, named)
  const { contexts, newIds, opening, negotiation, clock, metering } = services
  if (named !== undefined)
    throw invalidParams({
      field: QUESTION_FIELD,
      description: "is for the answer to a task's question: add the task's id as taskId"
    })
  const violations = opening ? inputViolations(opening, message) : []
  if (violations.length > 0) throw notThisMessage(violations)
  const arrived = negotiation && readProposal(message, negotiation, clock.now())
  const { contextId } = message
  const key = keyOf(scope, contextId ?? newIds.contextId(options.shard))
  const arrival = { message, taskId: newIds.taskId(key), arrived }
  const send = (live?: LiveContext) => request(services, key, arrival, options, live)
  return metering.opening(scope, arrival.taskId, () =>
    contextId === undefined ? send() : withLostRaceRetry(contexts, key, send, options.connection)
  )
}

/** A message that addresses no task, and the id for its task. */
interface Request {
  readonly message: Message
  readonly taskId: string
  readonly arrived: Arrival | undefined
}

/** Sends a request to its context, without `live` to a new one. */
async function request(
  services: OperationServices,
  key: ContextKey,
  { message, taskId, arrived }: Request,
  { send, webhook, extensions, details, trace, signal, connection, releaseRead }: RouteOptions,
  live: LiveContext = services.contexts.create(key, connection)
): Promise<MessageOutcome> {
  services.contexts.freeMemoryFor(live)
  releaseRead?.()
  const tail = new TaskTail(services, key, taskId, { signal, contextId: key.contextId })
  try {
    const contextRequest: ContextRequest = {
      callId: callIdOf(taskId),
      taskId,
      message,
      extensions,
      details,
      arrived,
      trace
    }
    if (send ?? webhook) contextRequest.isOnce = true
    const outcome = await live.receive(contextRequest, { send, webhook })
    if ('opened' in outcome) return { key, row: outcome.opened.rowOf(taskId), tail, opened: outcome.opened }
    tail.end()
    return { message: outcome.reply }
  } catch (error) {
    tail.end()
    throw error
  }
}

/**
 * Ends the negotiation of a context, whose open offer is withdrawn: the message opens a task that is canceled. Gives
 * the id of the task, once that is committed.
 */
export function withdraw(
  { contexts, newIds }: OperationServices,
  key: ContextKey,
  message: Message,
  send: RouteOptions['send'],
  connection: RouteOptions['connection']
): Promise<string> {
  const taskId = newIds.taskId(key)
  return withLostRaceRetry(
    contexts,
    key,
    async live => {
      await live.receive({ callId: callIdOf(taskId), taskId, message, isWithdrawal: true }, { send })
      return taskId
    },
    connection
  )
}

async function continueTask(
  services: OperationServices,
  scope: Scope,
  message: Message & { taskId: string },
  options: RouteOptions,
  named: string | undefined
): Promise<RoutedMessage> {
  const { store, contexts } = services
  const { taskId } = message
  const stored = await readTaskOrThrow(store, scope, taskId)
  const { contextId, status } = stored.task
  if (message.contextId !== undefined && message.contextId !== contextId) throw otherContext(taskId)
  // An ended task has no actor that could be asked.
  if (isTerminal(status.state)) throw refusal(stored, options)
  const { details, signal } = options
  const key = keyOf(scope, contextId)
  const event = {
    type: 'message.received' as const,
    taskId,
    message: { ...message, contextId },
    ...(details && { request: details })
  }
  const answers = { named, seen: questionIn(stored.task) }
  const tail = new TaskTail(services, scope, taskId, { signal })
  try {
    const row = await withLostRaceRetry(
      contexts,
      key,
      async live => {
        options.releaseRead?.()
        await live.replayed(taskId)
        await readQuestion(services, scope, stored, live.tasks)
        contexts.freeMemoryFor(live)
        return deliverEvent(live, event, { ...options, answers })
      },
      options.connection
    )
    if (row) return { key, row, tail }
    throw refusal(await readTaskOrThrow(store, scope, taskId), options)
  } catch (error) {
    tail.end()
    throw error
  }
}

const QUESTION_FIELD = `message.metadata["${QUESTION}"]`

/** The `messageId` of the question that a message names. Throws InvalidParams if it is none. */
function questionNamedBy({ metadata }: Message): string | undefined {
  const named = metadata?.[QUESTION]
  if (named === undefined || (typeof named === 'string' && named !== '')) return named
  throw invalidParams({
    field: QUESTION_FIELD,
    description: 'must be the messageId of the question that the message answers'
  })
}

/** Reads the open question of a task that has been restored since its question; from `stored` if that is up to date. */
async function readQuestion(
  { store }: OperationServices,
  scope: Scope,
  stored: StoredTask,
  tasks: LiveContext['tasks']
): Promise<void> {
  const { id } = stored.task
  if (!tasks.isInterrupted(id) || tasks.questionOf(id) !== undefined) return
  tasks.noteQuestion(
    id,
    tasks.generationOf(id) === stored.generation ? stored : await readTaskOrThrow(store, scope, id)
  )
}

/** The id of a message's call, by the task that it may open. The actor of its negotiation has this id too. */
function callIdOf(taskId: string): string {
  return `${taskId}?`
}

function keyOf({ tenant, principal }: Scope, contextId: string): ContextKey {
  return { tenant, principal, contextId }
}

/** The error for a message whose contextId is not that of its task. */
function otherContext(taskId: string): A2AError {
  return invalidParams({
    field: 'message.contextId',
    description: `must be the context of task ${taskId}, or be left out`
  })
}

function refusal({ task, generation }: StoredTask, { ifGeneration = generation }: EventOptions): A2AError {
  return ifGeneration === generation ? takesNoMessage(task) : generationMismatch(task.id, ifGeneration, generation)
}

function takesNoMessage({ id, status, contextId = '' }: Task): A2AError {
  const name = stateText(status.state)
  const why = isTerminal(status.state)
    ? `is ${name} and takes no more messages. Start a new task: send the message with contextId ${contextId} and referenceTaskIds ["${id}"], without a taskId.`
    : `is ${name} and does not accept this message. Wait until it asks for input, answer what it asks, or cancel it.`
  return new A2AError('UnsupportedOperation', `Task ${id} ${why}`, { metadata: { taskId: id, state: status.state } })
}
