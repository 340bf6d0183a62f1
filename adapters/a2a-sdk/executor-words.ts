import { isDeepStrictEqual } from 'node:util'
import * as sdk from '@a2a-js/sdk'
import type { AgentExecutionEvent, RequestContext } from '@a2a-js/sdk/server'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { Artifact, Message, Task, TaskStatus } from '../../machines/protocol/objects.ts'
import type { MessageContent } from '../../machines/task-events.ts'
import { artifact, failed, progress, rejected, type WorkWords } from '../../runtime/index.ts'
import { appendTo } from '../../runtime/store/task-record.ts'
import type { WorkEnd } from '../../runtime/work-port.ts'

/** The end of an executor's turn: a question, or the end of the task. JSON. */
export type TurnEnd =
  | { readonly asks: 'input-required' | 'auth-required'; readonly message: MessageContent | string }
  | { readonly result: Exclude<WorkEnd, void> }

/** The words of an executor's event, and the end of the turn, if it is one. */
export interface ExecutorWords {
  readonly words: readonly WorkWords[]
  readonly end?: TurnEnd
}

const NOTHING: ExecutorWords = { words: [] }

/** The executor's task, and its state when the turn began. */
type Given = Pick<RequestContext, 'taskId' | 'task'>

/**
 * Converts an executor's event to words of work. `earlierWords` are those of this turn and before. Throws
 * InvalidAgentResponse for an invalid event, or one of another task.
 */
export function executorWordsOf(
  event: AgentExecutionEvent,
  given: Given,
  earlierWords: readonly WorkWords[]
): ExecutorWords {
  try {
    return read(event, given, earlierWords)
  } catch (error) {
    if (isA2AError(error)) throw error
    throw new A2AError('InvalidAgentResponse', 'The executor published something that is not an event of the SDK.', {
      cause: error
    })
  }
}

function read(event: AgentExecutionEvent, { taskId, task }: Given, earlierWords: readonly WorkWords[]): ExecutorWords {
  switch (event.kind) {
    case 'message':
      return { words: [], end: { result: { message: contentOf(sdk.Message.toJSON(event.data) as Message) } } }
    case 'task':
      checkTask(event.data.id, taskId)
      return snapshotOf(
        sdk.Task.toJSON(event.data) as Partial<Task>,
        earlierWords,
        isDeepStrictEqual(event.data.status, task?.status)
      )
    case 'statusUpdate': {
      checkTask(event.data.taskId, taskId)
      const { status, metadata } = sdk.TaskStatusUpdateEvent.toJSON(event.data) as {
        status?: TaskStatus
        metadata?: Record<string, unknown>
      }
      if (!status) throw new A2AError('InvalidAgentResponse', 'The executor published a status event without a status.')
      return statusOf(status, metadata)
    }
    case 'artifactUpdate': {
      checkTask(event.data.taskId, taskId)
      const {
        artifact: content,
        append,
        lastChunk
      } = sdk.TaskArtifactUpdateEvent.toJSON(event.data) as {
        artifact: Artifact
        append?: boolean
        lastChunk?: boolean
      }
      return { words: [artifact(withParts(content), { ...(append && { append }), ...(lastChunk && { lastChunk }) })] }
    }
    default:
      throw new TypeError('This is not an event.')
  }
}

/** Executors may omit the task's id, but must not use another. */
function checkTask(named: string, taskId: string): void {
  if (named && named !== taskId)
    throw new A2AError(
      'InvalidAgentResponse',
      `The executor published an event of task ${named}, but it runs for task ${taskId}.`
    )
}

/** The news in a complete task: new or changed artifacts, and its status, unless it is unchanged. */
function snapshotOf(
  { artifacts = [], status, metadata }: Partial<Task>,
  earlierWords: readonly WorkWords[],
  isAsGiven: boolean
): ExecutorWords {
  const known = artifacts.length > 0 ? artifactsOf(earlierWords) : new Map<string, Artifact>()
  const fresh = artifacts.filter(content => !isDeepStrictEqual(content, known.get(content.artifactId)))
  const { words, end } = status && !isAsGiven ? statusOf(status, metadata) : NOTHING
  return { words: [...fresh.map(content => artifact(withParts(content))), ...words], ...(end && { end }) }
}

function statusOf(status: TaskStatus, metadata: Record<string, unknown> | undefined): ExecutorWords {
  const message = status.message && contentOf(status.message)
  switch (status.state) {
    case 'TASK_STATE_SUBMITTED':
      return NOTHING
    case 'TASK_STATE_WORKING':
      // The runtime has already sent this state; only a message is news.
      return message || metadata ? { words: [{ ...progress(message), ...(metadata && { metadata }) }] } : NOTHING
    case 'TASK_STATE_INPUT_REQUIRED':
      return { words: [], end: { asks: 'input-required', message: message ?? 'Input is required.' } }
    case 'TASK_STATE_AUTH_REQUIRED':
      return { words: [], end: { asks: 'auth-required', message: message ?? 'An authorization is required.' } }
    case 'TASK_STATE_COMPLETED':
      return { words: [], end: { result: { ...(message && { message }), ...(metadata && { metadata }) } } }
    case 'TASK_STATE_REJECTED':
      return { words: [], end: { result: rejected(message ?? 'The agent rejected the task.') } }
    case 'TASK_STATE_FAILED':
      return { words: [], end: { result: failed(message ?? 'The agent failed the task.') } }
    // Only clients cancel tasks: an executor that does so fails the task.
    case 'TASK_STATE_CANCELED':
      return { words: [], end: { result: failed(message ?? 'The agent canceled the task.') } }
    default:
      throw new A2AError('InvalidAgentResponse', 'The executor published a status without a valid state.')
  }
}

/** Removes ids and role, which the runtime sets. */
function contentOf(message: Message): MessageContent {
  const { parts = [], metadata, extensions } = message as Partial<Message>
  return { parts, ...(metadata && { metadata }), ...(extensions && { extensions }) }
}

/** Restores empty lists, which the SDK omits. */
function withParts(content: Artifact): Artifact {
  if (!isObject(content))
    throw new A2AError('InvalidAgentResponse', 'The executor published an artifact event without an artifact.')
  return { ...content, parts: content.parts ?? [] }
}

/** The artifacts in words, by id. */
function artifactsOf(earlierWords: readonly WorkWords[]): Map<string, Artifact> {
  const artifacts = new Map<string, Artifact>()
  for (const word of earlierWords) {
    if (word.type !== 'artifact') continue
    const content = word.artifact as Artifact
    const known = word.append ? artifacts.get(content.artifactId) : undefined
    if (known) appendTo(known, content)
    else artifacts.set(content.artifactId, { ...content, parts: [...content.parts] })
  }
  return artifacts
}
