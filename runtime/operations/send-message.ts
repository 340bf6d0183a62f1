import { A2AError, invalidParams } from '../../machines/protocol/errors.ts'
import type { SendMessageResponse, Task } from '../../machines/protocol/objects.ts'
import type { SendMessageRequest } from '../../machines/protocol/requests.ts'
import { isInterrupted, isTerminal, type TaskState } from '../../machines/protocol/states.ts'
import type { Room } from '../access/call-context.ts'
import { detailsOf } from '../authoring/request-details.ts'
import { taskNotFound } from '../contexts/errors.ts'
import type { OutsideTerms } from '../contexts/external-events.ts'
import { sendOf } from '../store/rows.ts'
import type { ReadOptions, StoredTask, TaskEvent } from '../store/store.ts'
import { applyEvent, projectTask, type TaskRecord } from '../store/task-record.ts'
import type { Opened } from '../streams/task-stream.ts'
import { isLarge, readWhole } from '../streams/whole-task.ts'
import { toWireTask } from '../streams/wire-view.ts'
import type { Admitted } from './admission.ts'
import { sendOnce, type Outcome } from './deduplication.ts'
import type { Routed } from './deliver.ts'
import type { OperationServices } from './dependencies.ts'
import { checkInputModes } from './input-modes.ts'
import { pushOf, webhookOfMessage } from './push-configs.ts'
import { routeMessage } from './route-message.ts'
import { placeNamed } from './task-names.ts'
import { tailOf } from './tasks.ts'

type Call = Admitted<SendMessageRequest>

/**
 * SendMessage (§3.1.1): answers with the agent's message, or with the task once it is terminal or interrupted; with
 * `returnImmediately` as soon as it exists (§3.2.2). Throws InvalidAgentResponse if the task failed because of what its agent said.
 */
export async function sendMessage(services: OperationServices, call: Call): Promise<SendMessageResponse> {
  const { configuration = {} } = call.params
  const pause = (placed: Routed) => (configuration.returnImmediately ? Promise.resolve(placed.opened?.().record) : paused(services, placed, call.signal))
  const outcome = await place(services, call, placed => ({ placed, paused: pause(placed) }))
  if ('message' in outcome) return outcome
  const { placed, paused: end } = outcome.attached
  const seen = await end
  const stored = seen ? projectTask(seen, configuration) : await whole(services, placed, configuration, call.room)
  if (seen && call.room && isLarge(stored.task)) await call.room()
  if (!configuration.returnImmediately) checkOutput(services, stored.task)
  return { task: toWireTask(stored, call.reliable) }
}

/**
 * SendStreamingMessage (§3.1.2): the agent's message alone, or the task and then everything that happens to it, until
 * it is terminal or asks for input.
 */
export async function sendStreamingMessage(services: OperationServices, call: Call): Promise<Opened> {
  const { configuration = {} } = call.params
  const outcome = await place(services, call, placed => following(services, placed, call.signal))
  if ('message' in outcome) return { first: outcome }
  const { placed, opened, tail } = outcome.attached
  try {
    const stored = opened ? projectTask(opened, configuration) : await whole(services, placed, configuration, call.room)
    call.numbered?.(stored.generation)
    if (!opened) tail.startAfter(stored.generation)
    if (endsStream(stored.task.status.state)) tail.end()
    return { first: { task: toWireTask(stored, call.reliable) }, following: { tail, call } }
  } catch (error) {
    tail.end()
    throw error
  }
}

/** Throws InvalidAgentResponse if a task failed because its agent said what is not valid A2A (§3.3.2). The task stays as it is. */
function checkOutput({ feeds }: OperationServices, { id, status }: Task): void {
  const error = status.state === 'TASK_STATE_FAILED' ? feeds.invalidOutput(id) : undefined
  if (error) throw new A2AError('InvalidAgentResponse', error.message, { metadata: { taskId: id }, cause: error })
}

/** Checks a message and brings it to where it belongs; once only, if the client or the runtime wants that. */
function place<T>(services: OperationServices, call: Call, attach: (placed: Routed) => T): Promise<Outcome<T>> {
  const { message, configuration } = call.params
  if (message.referenceTaskIds) message.referenceTaskIds = distinctReferences(message.referenceTaskIds, services.limits.referencedTasks)
  const config = configuration?.taskPushNotificationConfig
  if (config) pushOf(services)
  checkInputModes(message, services.inputModes)
  services.metering.message(call.scope)
  if (!config) return placed(services, call, undefined, attach)
  return webhookOfMessage(services, call, config).then(webhook => placed(services, call, webhook, attach))
}

function placed<T>(services: OperationServices, call: Call, webhook: OutsideTerms['webhook'], attach: (placed: Routed) => T): Promise<Outcome<T>> {
  const { store, clock, limits, sendsUnderWay, dedupe } = services
  const { params, scope, connection, conditions, taskName, reliable, extensions, trace } = call
  const { message } = params
  const terms = { ifGeneration: conditions.ifGenerationMatch, webhook, extensions, details: detailsOf(params), trace, connection }
  if (taskName) return placeNamed(services, scope, message, taskName, terms, attach)
  if (!reliable && !dedupe) return routeMessage(services, scope, message, terms, attach)
  const send = sendOf(message, clock.now(), limits.sendsRememberedMs)
  return sendOnce(store, sendsUnderWay, scope, send, () => routeMessage(services, scope, message, { ...terms, send }, attach), attach)
}

/**
 * Waits until the task pauses: at once if it already does as the message left it, else at its next pause. Gives the task as
 * it is then, if that is known without reading it: the message opened it, no other can have come to it, and it has ended.
 */
async function paused(services: OperationServices, placed: Routed, signal: AbortSignal | undefined): Promise<TaskRecord | undefined> {
  const { key, row, isRepeated } = placed
  const seen = services.takesMessages ? undefined : openedIn(placed)
  if (isTerminal(row.state)) return seen
  if (isPause(row.state)) return undefined
  const see = (event: TaskEvent) => {
    if (seen) applyEvent(seen, event)
    return pauses(event)
  }
  const tail = tailOf(services, key, row.taskId, see, signal)
  const { generation } = isRepeated ? found(await services.store.readTask(key, row.taskId, { historyLength: 0, artifacts: false }), row.taskId) : row
  await tail.startAfter(row.generation, generation).drain()
  signal?.throwIfAborted()
  // One that waits may have gone on by now.
  return seen && isTerminal(seen.status.state) ? seen : undefined
}

/** A task as the turn left it that a message opened. */
function openedIn({ opened }: Routed): TaskRecord | undefined {
  if (!opened) return undefined
  const { record, later } = opened()
  for (const event of later) applyEvent(record, event)
  return record
}

/** What a stream that begins with this message tells: the task, if the message opened it, and the events after that. */
function following(services: OperationServices, placed: Routed, signal: AbortSignal | undefined) {
  const tail = tailOf(services, placed.key, placed.row.taskId, endsReply, signal)
  if (!placed.opened) return { placed, tail }
  const { record: opened, later } = placed.opened()
  return { placed, opened, tail: tail.startAfter(opened.generation, opened.generation, later) }
}

async function whole({ store }: OperationServices, { key, row }: Routed, { historyLength }: ReadOptions, room?: Room): Promise<StoredTask> {
  return found(await readWhole(store, key, row.taskId, { historyLength }, room), row.taskId)
}

function found(stored: StoredTask | undefined, taskId: string): StoredTask {
  if (!stored) throw taskNotFound(taskId)
  return stored
}

function pauses({ update }: TaskEvent): boolean {
  return 'statusUpdate' in update && isPause(update.statusUpdate.status.state)
}

function isPause(state: TaskState): boolean {
  return isTerminal(state) || isInterrupted(state)
}

function endsReply({ update }: TaskEvent): boolean {
  return 'statusUpdate' in update && endsStream(update.statusUpdate.status.state)
}

/** A reply's stream ends where the client has to act: at an end and at a question, not while an authorization is awaited (§7.6.1). */
function endsStream(state: TaskState): boolean {
  return isTerminal(state) || state === 'TASK_STATE_INPUT_REQUIRED'
}

/** The ids that a message refers to, each of them once. Throws InvalidParams if there are too many. */
function distinctReferences(taskIds: readonly string[], limit: number): string[] {
  const distinct = [...new Set(taskIds)]
  if (distinct.length > limit) throw invalidParams({ field: 'message.referenceTaskIds', description: `must name at most ${limit} different tasks, not ${distinct.length}` })
  return distinct
}
