import type { Artifact, Task } from '../../../machines/protocol/objects.ts'
import type { Message } from '../../../machines/protocol/parts.ts'
import type { Words } from '../../../runtime/authoring/words.ts'

/** A request to another agent. */
export interface RemoteInput {
  readonly message: Words
  /** The context with that agent (`contextId` of an earlier result). Default: a new one for each task. */
  readonly contextId?: string
  /** Tasks of that agent that the message refers to. */
  readonly referenceTaskIds?: readonly string[]
  /** The time limit of the task, in milliseconds: then it is canceled, and the actor fails with DeadlineExceeded. Default: none. */
  readonly deadlineMs?: number
}

/** The task and the actor of an event. */
interface OfRemoteTask {
  /** The id of the actor: `id` of the `invoke`, or of `spawnChild`. */
  readonly from: string
  readonly taskId: string
}

/**
 * The events of a delegated task for the chart that started it. Declare them among the chart's events:
 * `setupWork({ types: { events: {} as RemoteEvent }, actors: { hotel: remoteAgent(…) } })`. `onDone` and `onError` report its end.
 */
export type RemoteEvent =
  /** The agent has accepted the task, works, or works again after a question. */
  | (OfRemoteTask & {
      readonly type: 'remote.status'
      readonly state: 'TASK_STATE_SUBMITTED' | 'TASK_STATE_WORKING'
      readonly message: Message | undefined
    })
  /** The agent produced an artifact, or with `append` a chunk of one. */
  | (OfRemoteTask & {
      readonly type: 'remote.artifact'
      readonly artifact: Artifact
      readonly append: boolean
      readonly lastChunk: boolean
    })
  /** The agent asks, and waits for the event {@link RemoteAnswer}. */
  | (OfRemoteTask & RemoteQuestion & { readonly type: 'remote.input-required' })
  /** The agent waits for an out-of-band authorization. It may also accept a {@link RemoteAnswer}. */
  | (OfRemoteTask & RemoteQuestion & { readonly type: 'remote.auth-required' })

/** A question of another agent. */
export interface RemoteQuestion {
  readonly message: Message | undefined
  /** Why the agent refused the previous answer: it asks again. */
  readonly refusal: string | undefined
}

/** An event that asks for an answer. */
export type RemoteAsking = Extract<RemoteEvent, RemoteQuestion>

/** The event for the actor: `sendTo('hotel', ({ event }) => ({ type: 'answer', message: event.message }))`. */
export interface RemoteAnswer {
  readonly type: 'answer'
  readonly message: Words
}

/** The result of a delegated task. */
export interface RemoteResult {
  /** The artifacts of the task; empty if the agent answered with a message. */
  readonly artifacts: Artifact[]
  /** The agent's last message, if any. */
  readonly message?: Message
  /** The context with the agent, for a follow-up message. */
  readonly contextId?: string
  /** The completed task; absent if the agent answered with a message. */
  readonly task?: Task
}
