import type { AgentCard } from '../../machines/protocol/card.ts'
import { A2AError, invalidParams } from '../../machines/protocol/errors.ts'
import type { SendMessageResponse, Task } from '../../machines/protocol/objects.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import type { SendMessageRequest } from '../../machines/protocol/requests.ts'
import { isInterrupted, isTerminal, type TaskState } from '../../machines/protocol/states.ts'
import type { Room } from '../access/call-context.ts'
import { detailsOf } from '../authoring/request-details.ts'
import { taskNotFound } from '../contexts/errors.ts'
import type { OutsideTerms } from '../contexts/external-events.ts'
import { sendOf } from '../store/rows.ts'
import type { ReadOptions, StoredTask, TaskEvent } from '../store/store.ts'
import { applyEvent, applyMessage, newTaskRecord, projectTask, type TaskRecord } from '../store/task-record.ts'
import type { Opened } from '../streams/task-stream.ts'
import { largeBytes, readWhole } from '../streams/whole-task.ts'
import { toWireTask } from '../streams/wire-view.ts'
import type { Admitted } from './admission.ts'
import { sendOnce } from './deduplication.ts'
import type { OperationServices } from './dependencies.ts'
import { pushOf, webhookOfMessage } from './push-configs.ts'
import { routeMessage, type Outcome, type Routed } from './route-message.ts'
import { placeNamed } from './task-names.ts'

type Call = Admitted<SendMessageRequest>

/**
 * SendMessage (§3.1.1): answers with the agent's message, or with the task once it is terminal or interrupted; with
 * `returnImmediately` as soon as it exists (§3.2.2). Throws InvalidAgentResponse if the task failed because of what its agent said.
 */
export async function sendMessage(services: OperationServices, call: Call): Promise<SendMessageResponse> {
  const { configuration = {} } = call.params
  const outcome = await route(services, call)
  if ('message' in outcome) return outcome
  const { tail } = outcome
  try {
    const seen = configuration.returnImmediately ? openedIn(outcome, begins) : await paused(services, outcome, call.signal)
    const stored = seen ? projectTask(seen, configuration) : await whole(services, outcome, configuration, call.room)
    const bytes = seen && call.room ? largeBytes(stored.task) : 0
    if (bytes > 0) await call.room?.(bytes)
    if (!configuration.returnImmediately) checkOutput(services, stored.task)
    return { task: toWireTask(stored, call.reliable) }
  } finally {
    tail.end()
  }
}

/**
 * SendStreamingMessage (§3.1.2): the agent's message alone, or the task and then everything that happens to it, until
 * it is terminal or asks for input.
 */
export async function sendStreamingMessage(services: OperationServices, call: Call): Promise<Opened> {
  const { configuration = {} } = call.params
  const outcome = await route(services, call)
  if ('message' in outcome) return { first: outcome }
  const { tail } = outcome
  try {
    const opened = openedIn(outcome, begins)
    const stored = opened ? projectTask(opened, configuration) : await whole(services, outcome, configuration, call.room)
    call.numbered?.(stored.generation)
    tail.until(endsReply).startAfter(stored.generation)
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

/** Checks a message and brings it to where it belongs. */
function route(services: OperationServices, call: Call): Promise<Outcome> {
  const { message, configuration } = call.params
  if (message.referenceTaskIds) message.referenceTaskIds = distinctReferences(message.referenceTaskIds, services.limits.referencedTasks)
  const config = configuration?.taskPushNotificationConfig
  if (config) pushOf(services)
  checkInputModes(message, services.inputModes)
  services.metering.message(call.scope)
  return config ? webhookOfMessage(services, call, config).then(webhook => routeOnce(services, call, webhook)) : routeOnce(services, call, undefined)
}

/** Brings a message to where it belongs; once only, if the client or the runtime wants that. */
function routeOnce(services: OperationServices, call: Call, webhook: OutsideTerms['webhook']): Promise<Outcome> {
  const { clock, limits, dedupe } = services
  const { params, scope, connection, conditions, taskName, reliable, extensions, trace, signal, waits } = call
  const { message } = params
  const terms = { ifGeneration: conditions.ifGenerationMatch, webhook, extensions, details: detailsOf(params), trace, connection, signal, waits }
  if (taskName) return placeNamed(services, scope, message, taskName, terms)
  if (!reliable && !dedupe) return routeMessage(services, scope, message, terms)
  const send = sendOf(message, clock.now(), limits.sendsRememberedMs)
  return sendOnce(services, scope, send, signal, () => routeMessage(services, scope, message, { ...terms, send }))
}

/**
 * Waits until the task pauses: at once if it already does as the message left it, else at its next pause. Gives the task as
 * it is then, if that is known without reading it: the message opened it, no other can have come to it, and it has ended.
 */
async function paused({ takesMessages }: OperationServices, outcome: Routed, signal: AbortSignal | undefined): Promise<TaskRecord | undefined> {
  const { row: { generation, state }, tail } = outcome
  const seen = takesMessages ? undefined : openedIn(outcome)
  if (isTerminal(state)) return seen
  if (isPause(state)) return undefined
  const see = (event: TaskEvent) => {
    if (seen) applyEvent(seen, event)
    return undefined
  }
  await tail.until(pauses).startAfter(generation).each(see)
  signal?.throwIfAborted()
  // One that waits may have gone on by now.
  return seen && isTerminal(seen.status.state) ? seen : undefined
}

/** A task that a message opened: as the turn left it, or as it was before the first event of a kind. */
function openedIn({ key, row: { taskId }, opened }: Routed, isAfter?: (event: TaskEvent) => boolean): TaskRecord | undefined {
  if (!opened) return undefined
  const record = newTaskRecord(key, taskId)
  for (const entry of opened.log) {
    if (entry.taskId !== taskId) continue
    if ('message' in entry) applyMessage(record, entry)
    else if (isAfter?.(entry)) break
    else applyEvent(record, entry)
  }
  return record
}

function begins({ update }: TaskEvent): boolean {
  return 'statusUpdate' in update && update.statusUpdate.status.state === 'TASK_STATE_WORKING'
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

/** Media types that an agent takes, out of its card: its own and those of its skills, lower-case, without parameters. */
export function inputModesOf({ defaultInputModes, skills }: Pick<AgentCard, 'defaultInputModes' | 'skills'>): ReadonlySet<string> {
  return new Set([...defaultInputModes, ...skills.flatMap(({ inputModes = [] }) => inputModes)].map(bare))
}

/** Refuses a message with a part of a media type that the agent does not take (§3.1.1). Parts without one pass. */
export function checkInputModes(message: Message, modes: ReadonlySet<string>): void {
  for (const { mediaType } of message.parts) {
    if (mediaType === undefined || accepts(modes, bare(mediaType))) continue
    throw new A2AError('ContentTypeNotSupported', `The agent does not take ${mediaType}. It takes ${[...modes].join(', ')}.`, {
      metadata: { mediaType }
    })
  }
}

function accepts(modes: ReadonlySet<string>, mediaType: string): boolean {
  return modes.has(mediaType) || modes.has('*/*') || modes.has(`${mediaType.split('/')[0]}/*`)
}

function bare(mediaType: string): string {
  return mediaType.replace(/;.*/s, '').trim().toLowerCase()
}
