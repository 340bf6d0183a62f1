import { A2AError, isA2AError, type ErrorCode } from '../../../machines/protocol/errors.ts'
import {
  ANSWER_SCHEMAS,
  type SendMessageRequest,
  type StreamResponse,
  type SubscribeToTaskRequest,
  type Task
} from '../../../machines/protocol/objects.ts'
import { isTerminal } from '../../../machines/protocol/states.ts'
import { onAbort } from '../../../runtime/primitives/event-loop.ts'
import type { StreamContext } from '../calls.ts'
import { withoutGeneration } from '../generations.ts'
import {
  knownFrom,
  lastingParameters,
  type StreamProgress,
  taskReferenceOf,
  tenantOf,
  validAnswer
} from '../requests.ts'
import { mention, warnOf } from '../warnings.ts'
import { delay } from './request-retry.ts'

/** Errors of an agent that does not have a method. It has not processed the request. */
const UNSUPPORTED: readonly ErrorCode[] = ['UnsupportedOperation', 'MethodNotFound']

/**
 * Errors with which a subscription is refused, or cannot be read. It changes nothing, so the task itself can be read
 * instead.
 */
const REFUSALS: readonly ErrorCode[] = [
  ...UNSUPPORTED,
  'TaskNotFound',
  'InvalidParams',
  'InternalError',
  'InvalidAgentResponse'
]

/** The wait between two looks at a task without a stream, unless the caller has chosen one. */
const FIRST_LOOK_MS = 1000
const LAST_LOOK_MS = 15_000

/**
 * Continues where the agent's stream ended, or was refused with an error. Throws the error if nothing else may be
 * tried: a message that may have been processed is never sent again.
 */
export async function* withoutStream(
  context: StreamContext,
  progress: StreamProgress,
  refusal?: A2AError
): AsyncGenerator<StreamResponse, void, undefined> {
  const { hasEvents, isSend } = progress
  if (refusal && !(hasEvents || !isSend ? REFUSALS : UNSUPPORTED).includes(refusal.code)) throw refusal
  if (refusal && !hasEvents) {
    if (isSend) {
      mention(`The message was sent with SendMessage: ${refusal.message}`)
      yield* sent(context, progress)
    } else if (UNSUPPORTED.includes(refusal.code)) throw refusal
    else progress.taskId = (context.frame.params as SubscribeToTaskRequest).id
  }
  if (progress.taskId === undefined || progress.isAtEnd) return
  if (refusal?.violations.some(({ field }) => field === 'afterGeneration')) yield* readAgain(context, progress)
  if (progress.isAtEnd) return
  if (hasEvents)
    mention(`Its stream ended before its task. The task was read with GetTask${refusal ? `: ${refusal.message}` : '.'}`)
  const task = await storedTask(context, progress).catch((error: unknown) => {
    throw refusal ?? error
  })
  if (!isSend && !isTerminal(task.status.state))
    throw new A2AError('UnsupportedOperation', 'The agent does not stream this task.', { cause: refusal })
  yield* looks(task, context, progress)
}

/**
 * Restarts a stream after the agent lost events, as after a restored backup: the task, then its events. They have no
 * generations, because the agent gives numbers again that this reader has seen for other events.
 */
async function* readAgain(
  { calls, frame, signal }: StreamContext,
  progress: StreamProgress
): AsyncGenerator<StreamResponse, void, undefined> {
  const { params, trace } = frame
  const { taskId: id } = progress
  warnOf(calls.url)(`Task ${id} has fewer events than before, as after a restored backup. It is read again.`)
  try {
    for await (const event of calls.stream(
      { method: 'SubscribeToTask', params: { ...tenantOf(params), id }, parameters: lastingParameters(frame), trace },
      signal
    )) {
      progress.note(event)
      yield withoutGeneration(event)
      if (progress.isAtEnd) break
    }
  } catch (error) {
    if (!isA2AError(error) || !REFUSALS.includes(error.code)) throw error
  }
}

/**
 * The task as it is stored, in place of the event that ended it or that skipped a generation; the event if the task
 * cannot be read, or is older.
 */
export async function storedEvent(
  context: StreamContext,
  progress: StreamProgress,
  event: StreamResponse
): Promise<StreamResponse> {
  const { hasGap } = progress
  if (hasGap) mention('An event skipped a generation. The task was read with GetTask.')
  const task = await storedTask(context, progress).catch(() => undefined)
  if (!task) return event
  const { generation } = taskReferenceOf({ task })
  if (hasGap && !(Number(generation) >= Number(taskReferenceOf(event).generation))) return event
  progress.noteRead(task)
  return { task }
}

/** The answer to the message, sent as SendMessage. */
async function* sent(
  { calls, frame, signal }: StreamContext,
  progress: StreamProgress
): AsyncGenerator<StreamResponse, void, undefined> {
  const { configuration = {}, ...params } = frame.params as SendMessageRequest
  const early = { ...params, configuration: { returnImmediately: true, ...configuration } }
  const answer = validAnswer(
    ANSWER_SCHEMAS[calls.generations.version].sendMessage,
    await calls.call({ ...frame, method: 'SendMessage', params: early }, signal),
    calls.url,
    knownFrom(params)
  )
  progress.note(answer)
  yield answer
}

/** The task after each change, from this look on. */
async function* looks(
  first: Task,
  context: StreamContext,
  progress: StreamProgress
): AsyncGenerator<StreamResponse, void, undefined> {
  let last = ''
  const { pollIntervalMs: firstMs = FIRST_LOOK_MS, pollIntervalMs: lastMs = LAST_LOOK_MS } = context
  let waitMs = firstMs
  const next = async () => {
    await waitUnlessWoken(waitMs, context)
    waitMs = Math.min(2 * waitMs, lastMs)
    return storedTask(context, progress)
  }
  for (let task: Task | undefined = first; task; task = progress.isAtEnd ? undefined : await next()) {
    const text = JSON.stringify(task)
    if (text === last) continue
    last = text
    waitMs = firstMs
    progress.note({ task })
    yield withoutGeneration({ task })
  }
}

async function storedTask(
  { calls, frame, signal }: StreamContext,
  { taskId, contextId }: StreamProgress
): Promise<Task> {
  const { params, trace } = frame
  const request = { method: 'GetTask' as const, params: { ...tenantOf(params), id: taskId }, trace }
  return validAnswer(
    ANSWER_SCHEMAS[calls.generations.version].task,
    await calls.call({ ...request, parameters: lastingParameters(frame) }, signal),
    calls.url,
    { taskId, contextId }
  )
}

/** Waits before the next look, at most until another call may have changed the task. */
async function waitUnlessWoken(ms: number, { calls, signal, clock, sleepers }: StreamContext): Promise<void> {
  const waking = new AbortController()
  const wake = () => waking.abort()
  const unwatch = [calls.link.on('closed', wake), signal && onAbort(signal, wake)]
  sleepers.add(wake)
  await delay(ms, clock, waking.signal)
  for (const stop of unwatch) stop?.()
  sleepers.delete(wake)
  signal?.throwIfAborted()
}
