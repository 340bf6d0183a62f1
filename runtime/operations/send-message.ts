import type { AgentCard } from '../../machines/protocol/card.ts'
import { A2AError, invalidParams } from '../../machines/protocol/errors.ts'
import type { Message, SendMessageRequest, SendMessageResponse } from '../../machines/protocol/objects.ts'
import { isPause, isReplyEnd, isTerminal } from '../../machines/protocol/states.ts'
import type { Budget } from '../access/call-context.ts'
import { requestDetailsOf } from '../authoring/work-arguments.ts'
import type { EventOptions } from '../contexts/external-events.ts'
import { deduplicationKeyOf } from '../store/rows.ts'
import type { ReadOptions, StoredTask, TaskEvent } from '../store/store.ts'
import {
  applyEvent,
  applyMessage,
  hasState,
  newTaskRecord,
  projectTask,
  type TaskRecord
} from '../store/task-record.ts'
import {
  completedOrThrow,
  eventBytes,
  LARGE_BYTES,
  type OpenedStream,
  readOptionsFor,
  readWholeOrThrow,
  toWireTask
} from '../streams/task-stream.ts'
import type { Admitted } from './admission.ts'
import type { OperationServices } from './dependencies.ts'
import { routeByKey, sendOnce } from './keyed-messages.ts'
import { pushOf, webhookOfMessage } from './push-configs.ts'
import { type MessageOutcome, type RoutedMessage, routeMessage } from './route-message.ts'
import { routeOnNode } from './send-on-node.ts'

type Call = Admitted<SendMessageRequest>

/**
 * SendMessage (§3.1.1): answers with the agent's message, or with the task when it is terminal or interrupted. With
 * `returnImmediately` it answers when the task exists (§3.2.2).
 */
export async function sendMessage(services: OperationServices, call: Call): Promise<SendMessageResponse> {
  const { configuration = {} } = call.params
  const options = readOptionsFor(call, configuration)
  const outcome = await route(services, call, false)
  if ('message' in outcome) return outcome
  const {
    tail,
    row: { generation, state }
  } = outcome
  const untilPause = !configuration.returnImmediately
  try {
    // The task in memory, if this message opened it and it is small: its events change it.
    let followed = taskFromTurn(outcome, options, untilPause ? undefined : isWorking)
    let bytes = 0
    if (untilPause && !isPause(state)) {
      await tail
        .until(endsAnswer)
        .startAfter(generation)
        .each(event => {
          if (followed && (bytes += eventBytes(event)) <= LARGE_BYTES) applyEvent(followed, event)
          else followed = undefined
          return undefined
        })
      call.signal?.throwIfAborted()
    }
    // After a wait the task in memory is the answer only if it has ended, and no message can have reached it; else it may
    // have moved on.
    const mayHaveMovedOn =
      untilPause && followed && (!isTerminal(followed.status.state) || (services.takesMessages && tail.mayHaveMessages))
    const answer =
      followed && !mayHaveMovedOn
        ? projectTask(followed, options)
        : await readOutcome(services, outcome, options, call.budget)
    return { task: toWireTask(answer, call) }
  } finally {
    tail.end()
  }
}

/**
 * SendStreamingMessage (§3.1.2): streams the agent's message alone, or the task and then its events until it is
 * terminal or asks for input.
 */
export async function sendStreamingMessage(services: OperationServices, call: Call): Promise<OpenedStream> {
  const options = readOptionsFor(call, call.params.configuration)
  const outcome = await route(services, call, true)
  if ('message' in outcome) return { first: outcome }
  const { tail } = outcome
  try {
    const opened = taskFromTurn(outcome, options, isWorking)
    const stored = opened ? projectTask(opened, options) : await readOutcome(services, outcome, options, call.budget)
    call.onGeneration?.(stored.generation)
    tail.until(endsStream).startAfter(stored.generation)
    if (isReplyEnd(stored.task.status.state)) tail.end()
    return { first: { task: toWireTask(stored, call) }, following: { tail, call } }
  } catch (error) {
    tail.end()
    throw error
  }
}

/** Routes a message, on the node of its context in a cluster. */
function route(services: OperationServices, call: Call, isStream: boolean): Promise<MessageOutcome> {
  return services.cluster
    ? routeOnNode(services, call, isStream, services.cluster, shard => routeHere(services, call, shard))
    : routeHere(services, call)
}

/** Validates a message and routes it. `shard` is that of a context that it opens. */
export function routeHere(services: OperationServices, call: Call, shard?: number): Promise<MessageOutcome> {
  const { message, configuration } = call.params
  if (message.referenceTaskIds)
    message.referenceTaskIds = distinctReferences(message.referenceTaskIds, services.limits.referencedTasks)
  const config = configuration?.taskPushNotificationConfig
  if (config) pushOf(services)
  checkInputModes(message, services.inputModes)
  services.metering.message(call.scope)
  return config
    ? webhookOfMessage(services, call, config).then(webhook => routeOnce(services, call, webhook, shard))
    : routeOnce(services, call, undefined, shard)
}

/** Routes a message, deduplicated if the client or the runtime requires that. */
function routeOnce(
  services: OperationServices,
  call: Call,
  webhook: EventOptions['webhook'],
  shard: number | undefined
): Promise<MessageOutcome> {
  const { clock, limits, deduplicate } = services
  const { params, scope, connection, conditions, key, isOnce, extensions, trace, signal, releaseRead } = call
  const { message } = params
  const options = {
    ifGeneration: conditions.ifGenerationMatch,
    webhook,
    extensions,
    details: requestDetailsOf(params),
    trace,
    connection,
    signal,
    releaseRead,
    shard
  }
  if (key) return routeByKey(services, scope, message, key, options)
  if (!isOnce && !deduplicate) return routeMessage(services, scope, message, options)
  const send = deduplicationKeyOf(message, clock.now(), limits.dedupeWindowMs)
  return sendOnce(services, scope, send, signal, () => routeMessage(services, scope, message, { ...options, send }))
}

/** A task that the message opened, after its turn, or before the first event for which `isAfter` is true. */
function taskFromTurn(
  { key, row: { taskId }, opened }: RoutedMessage,
  { timelineLength }: ReadOptions,
  isAfter?: (event: TaskEvent) => boolean
): TaskRecord | undefined {
  if (!opened) return undefined
  const record = newTaskRecord(key, taskId, timelineLength !== undefined)
  for (const entry of opened.log) {
    if (entry.taskId !== taskId) continue
    if ('message' in entry) applyMessage(record, entry)
    else if (isAfter?.(entry)) break
    else applyEvent(record, entry)
  }
  return record
}

function isWorking(event: TaskEvent): boolean {
  return hasState(event, state => state === 'TASK_STATE_WORKING')
}

/** Reads the task that a message has reached. */
function readOutcome(
  { store }: OperationServices,
  { key, row, continued }: RoutedMessage,
  options: ReadOptions,
  budget?: Budget
): Promise<StoredTask> {
  return continued
    ? completedOrThrow(store, key, row.taskId, continued, options, budget)
    : readWholeOrThrow(store, key, row.taskId, options, budget)
}

function endsAnswer(event: TaskEvent): boolean {
  return hasState(event, isPause)
}

function endsStream(event: TaskEvent): boolean {
  return hasState(event, isReplyEnd)
}

/** The distinct ids that a message refers to. Throws InvalidParams if there are too many. */
function distinctReferences(taskIds: readonly string[], limit: number): string[] {
  const distinct = [...new Set(taskIds)]
  if (distinct.length > limit)
    throw invalidParams({
      field: 'message.referenceTaskIds',
      description: `must name at most ${limit} different tasks, not ${distinct.length}`
    })
  return distinct
}

/** Media types that an agent accepts, from its card and its skills: lower-case, without parameters. */
export function inputModesOf({
  defaultInputModes,
  skills
}: Pick<AgentCard, 'defaultInputModes' | 'skills'>): ReadonlySet<string> {
  return new Set([...defaultInputModes, ...skills.flatMap(({ inputModes = [] }) => inputModes)].map(bare))
}

/**
 * Throws ContentTypeNotSupported if a part has a media type that the agent does not accept (§3.1.1). Parts without a
 * media type pass.
 */
export function checkInputModes(message: Message, modes: ReadonlySet<string>): void {
  for (const { mediaType } of message.parts) {
    if (mediaType === undefined || accepts(modes, bare(mediaType))) continue
    throw new A2AError(
      'ContentTypeNotSupported',
      `The agent does not accept ${mediaType}. It accepts ${[...modes].join(', ')}.`,
      {
        metadata: { mediaType }
      }
    )
  }
}

function accepts(modes: ReadonlySet<string>, mediaType: string): boolean {
  return modes.has(mediaType) || modes.has('*/*') || modes.has(`${mediaType.split('/')[0]}/*`)
}

function bare(mediaType: string): string {
  return mediaType.replace(/;.*/s, '').trim().toLowerCase()
}
