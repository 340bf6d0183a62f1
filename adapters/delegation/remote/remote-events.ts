import type { Artifact, Task } from '../../../machines/protocol/objects.ts'
import type { Message } from '../../../machines/protocol/parts.ts'
import type { Words } from '../../../runtime/authoring/words.ts'

/** What another agent is asked to do. */
export interface RemoteInput {
  readonly message: Words
  /** A conversation with that agent to go on with (`contextId` of an earlier result). Default: one of its own for each task. */
  readonly contextId?: string
  /** Tasks of that agent that the message refers to. */
  readonly referenceTaskIds?: readonly string[]
  /** How long its task may take, in milliseconds; then it is canceled, and the actor fails with DeadlineExceeded. Default: as long as it likes. */
  readonly deadlineMs?: number
}

/** Which task of which actor an event tells of. */
interface OfRemoteTask {
  /** The id of the actor: `id` of the `invoke`, or of `spawnChild`. */
  readonly from: string
  readonly taskId: string
}

/**
 * What a delegated task tells the chart that started it. Name it among the chart's events:
 * `setupWork({ types: { events: {} as RemoteEvent }, actors: { hotel: remoteAgent(…) } })`. How the task ended tell
 * `onDone` and `onError`.
 */
export type RemoteEvent =
  /** The other agent has the task, works, or works on after a question of its own. */
  | (OfRemoteTask & { readonly type: 'remote.status'; readonly state: 'TASK_STATE_SUBMITTED' | 'TASK_STATE_WORKING'; readonly message: Message | undefined })
  /** It hands over an artifact, or with `append` a chunk of one. */
  | (OfRemoteTask & { readonly type: 'remote.artifact'; readonly artifact: Artifact; readonly append: boolean; readonly lastChunk: boolean })
  /** It asks, and waits for the event {@link RemoteAnswer}. */
  | (OfRemoteTask & RemoteQuestion & { readonly type: 'remote.input-required' })
  /** It waits for an authorization, which reaches it out of band; it may take a {@link RemoteAnswer}, too. */
  | (OfRemoteTask & RemoteQuestion & { readonly type: 'remote.auth-required' })

/** What another agent asks. */
export interface RemoteQuestion {
  readonly message: Message | undefined
  /** Why it did not take the answer that it was given: it asks again. */
  readonly refusal: string | undefined
}

/** An event with which another agent asks. */
export type RemoteAsking = Extract<RemoteEvent, RemoteQuestion>

/** What the actor takes from its chart: `sendTo('hotel', ({ event }) => ({ type: 'answer', message: event.message }))`. */
export interface RemoteAnswer {
  readonly type: 'answer'
  readonly message: Words
}

/** What came of a message to another agent. */
export interface RemoteResult {
  /** What the task has made; none if the agent answered with a message alone. */
  readonly artifacts: Artifact[]
  /** What the agent said last, if it said something. */
  readonly message?: Message
  /** The conversation, for a message that goes on with it. */
  readonly contextId?: string
  /** The task as it was completed; none if the agent answered with a message alone. */
  readonly task?: Task
}
