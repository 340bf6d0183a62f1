import { A2AError, type ErrorCode, isA2AError } from '../../machines/protocol/errors.ts'
import type { Message, StreamResponse, Task } from '../../machines/protocol/objects.ts'
import { isInterrupted, type TaskState } from '../../machines/protocol/states.ts'
import { textOf } from '../../runtime/index.ts'
import { onAbort } from '../../runtime/primitives/event-loop.ts'
import type { ActorHost } from '../../runtime/work-port.ts'
import type { AgentClient } from '../client/agent-client.ts'
import type { PooledClient } from './pooled-client.ts'
import { type PendingAnswer, digestOf } from './remote-record.ts'

/** A task to open once. */
interface Opening {
  readonly client: AgentClient
  /** Its id and context are the same on every attempt. */
  readonly message: Message & { readonly contextId: string }
  /** Whether no other message has this context. */
  readonly isOwnContext: boolean
  /** Whether it may have been sent before. */
  readonly isAgain: boolean
  readonly signal: AbortSignal
  /** Throws if the task is no longer needed. */
  readonly checkWanted: () => void
  /** Called with the id of a task that was found. */
  readonly identify: (id: string) => void
  /** Whether the id is known. */
  readonly isKnown: () => boolean
  readonly take: (events: AsyncIterable<StreamResponse>) => Promise<void>
}

/**
 * Sends the message that opens a task, and forwards its events until the task ends or asks, or the stream ends. If the
 * message may have been sent before, or its connection was lost, the task is first looked up in the agent's list. An
 * agent that processes a resent message once opens one task in any case; another agent does so only if it lists its
 * tasks.
 */
export async function openTask(opening: Opening): Promise<void> {
  const { client, message, isAgain, signal, checkWanted, identify, isKnown, take } = opening
  const found = isAgain ? await taskOf(opening) : undefined
  if (found) return identify(found.id)
  checkWanted()
  try {
    await take(client.sendStreamingMessage({ message }, { signal }))
  } catch (error) {
    if (isAgain || isKnown() || !isLost(error)) throw error
    return openTask({ ...opening, isAgain: true })
  }
}

/** The task that the message has opened, if the agent lists it. */
async function taskOf({
  client,
  message: { contextId, messageId },
  isOwnContext,
  signal
}: Opening): Promise<Task | undefined> {
  try {
    const { tasks } = await client.listTasks({ contextId, pageSize: 100 }, { signal })
    return tasks.find(({ history = [] }) => isOwnContext || history.some(message => message.messageId === messageId))
  } catch (error) {
    if (isNotDoneThere(error)) return undefined
    throw error
  }
}

/** An answer to a task, which is delivered once. */
interface Delivery {
  readonly client: AgentClient
  readonly answer: PendingAnswer
  readonly messageId: string
  readonly taskId: string
  /** Whether it may have been sent before. */
  readonly isAgain: boolean
  readonly signal: AbortSignal
}

/** Sends an answer. Resolves with the agent's reason for refusing it, or `undefined` if it was accepted. */
export async function deliverAnswer(delivery: Delivery): Promise<string | undefined> {
  const {
    client,
    answer: { content },
    messageId,
    taskId,
    isAgain,
    signal
  } = delivery
  if (isAgain && (await isDelivered(delivery))) return undefined
  try {
    const message = { ...content, messageId, role: 'ROLE_USER' as const, taskId }
    await client.sendMessage({ message, configuration: { returnImmediately: true, historyLength: 0 } }, { signal })
    return undefined
  } catch (error) {
    if (!isA2AError(error) || error.code === 'InvalidAgentResponse') throw error
    if (!isLost(error)) return error.message
    if (isAgain) throw error
    return deliverAnswer({ ...delivery, isAgain: true })
  }
}

/**
 * Whether an answer has reached its task: it is in the history, or, without a history, the task's status has changed.
 */
async function isDelivered({ client, answer, messageId, taskId, signal }: Delivery): Promise<boolean> {
  const { status, history = [] } = await client.getTask({ id: taskId }, { signal })
  if (history.length > 0) return history.some(message => message.messageId === messageId)
  return !isInterrupted(status.state) || digestOf(status) !== answer.to
}

/** A task of another agent that is no longer needed. */
interface Unwanted {
  readonly host: ActorHost
  /** The id of the delegating task. */
  readonly taskId: string
  readonly agent: PooledClient
  /** Resolves with the id of the agent's task when it is known; with `undefined` if there is none. */
  readonly known: Promise<string | undefined>
  /** Aborts all other requests of the delegation. */
  readonly halt: () => void
}

/** The time limit for canceling a task. */
const CANCEL_WITHIN_MS = 5000

/** Cancels a task of another agent, within the time limit. Never rejects: errors are logged. */
export async function cancelRemote(unwanted: Unwanted): Promise<void> {
  const {
    host: { clock, logger },
    taskId,
    agent,
    halt
  } = unwanted
  const limit = new AbortController()
  const timer = clock.setTimeout(
    () => limit.abort(new DOMException(`It could not be canceled within ${CANCEL_WITHIN_MS} ms.`, 'TimeoutError')),
    CANCEL_WITHIN_MS
  )
  const tooLate = new Promise<never>((_, reject) => void onAbort(limit.signal, () => reject(limit.signal.reason)))
  try {
    await Promise.race([canceled(unwanted, limit.signal), tooLate])
  } catch (error) {
    // It has ended meanwhile.
    if (isA2AError(error) && error.code === 'TaskNotCancelable') return
    logger.warn('a task of another agent was not canceled', { taskId, agent: agent.title, error })
  } finally {
    clock.clearTimeout(timer)
    halt()
  }
}

async function canceled({ agent, known, halt }: Unwanted, signal: AbortSignal): Promise<void> {
  const id = await known
  if (id === undefined) return
  await agent.use(
    async client => {
      halt()
      await client.cancelTask({ id }, { signal })
    },
    { isPatient: false, signal }
  )
}

/** The end of an incomplete task, in words. */
const ENDS: Partial<Record<TaskState, string>> = {
  TASK_STATE_FAILED: 'failed',
  TASK_STATE_REJECTED: 'rejected the task',
  TASK_STATE_CANCELED: 'canceled the task'
}

/** The meaning of an error; any other error is a refusal. */
const TROUBLES: Partial<Record<ErrorCode, string>> = {
  Overloaded: 'could not be reached',
  RateLimited: 'is over its limits',
  InvalidAgentResponse: 'sent an invalid answer'
}

/** Errors for unsupported operations. */
const NOT_DONE_THERE: readonly ErrorCode[] = ['UnsupportedOperation', 'MethodNotFound', 'InvalidRequest']

/** The error for a task that the agent did not complete; `metadata.state` is its state. */
export function notCompleted(title: string, { id, status: { state, message } }: Task): A2AError {
  const reason = message && textOf(message)
  return new A2AError(
    'InternalError',
    `${title} ${ENDS[state] ?? 'did not complete the task'}${reason ? `: ${reason}` : '.'}`,
    { metadata: { state, taskId: id } }
  )
}

/** An error of a connection to another agent, or of the agent, for the work. */
export function troubleWith(title: string, error: unknown): unknown {
  if (!isA2AError(error)) return error
  const { code, message, metadata, violations } = error
  return new A2AError(code, `${title} ${TROUBLES[code] ?? 'refused'}: ${message}`, {
    metadata,
    violations,
    cause: error
  })
}

/** The error after the deadline. */
export function tooLate(title: string, deadlineMs: number): A2AError {
  return new A2AError('DeadlineExceeded', `${title} was not done within ${deadlineMs} ms.`)
}

/** Whether an agent does not support an operation. */
export function isNotDoneThere(error: unknown): boolean {
  return isA2AError(error) && NOT_DONE_THERE.includes(error.code)
}

/** Whether an error leaves open if the agent received the request. */
function isLost(error: unknown): boolean {
  return isA2AError(error) && error.code === 'Overloaded'
}
