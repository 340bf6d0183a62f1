import type { Artifact, Message, RequestDetails } from './protocol/objects.ts'
import type { TaskState } from './protocol/states.ts'
import type { Crash, Recovery } from './supervision.ts'

/** Content of a message, before the runtime adds ids and role (§4.1.4). */
export type MessageContent = Pick<Message, 'parts' | 'metadata' | 'extensions'>

/** Content of an artifact. If the author gives no id, the runtime adds one (§4.1.7). */
export type ArtifactContent = Omit<Artifact, 'artifactId'> & { artifactId?: string }

/** How work ended: completed with artifacts and a closing message, or failed or rejected with a reason. */
export type WorkOutcome =
  | { state: 'completed'; artifacts: ArtifactContent[]; message?: MessageContent; metadata?: Record<string, unknown> }
  | { state: 'failed' | 'rejected'; message: MessageContent; metadata?: Record<string, unknown> }

/** Number of a word within its work, from 1. On replay, words are matched by it. */
export type Numbered = { ordinal?: number }

/** Message and metadata of a status. */
export type StatusContent = Numbered & { message?: MessageContent; metadata?: Record<string, unknown> }

/** A client's message, with metadata and configuration of its request, if any. */
export type ClientMessage = { message: Message; request?: RequestDetails }

/**
 * The answer, as the open question's schema parsed it. An event that has one has been validated already. `question`:
 * the id of the state of the work with the question.
 */
export type ParsedAnswer = { answer?: unknown; question?: string }

/** A question of the work. `asks`: its key, if the work may ask several at once. It is found by it after a restart. */
export type WorkQuestion = StatusContent & { message: MessageContent; asks?: string }

/** Events that running work sends to its task. */
export type WorkEvent =
  | ({ type: 'work.progressed' } & StatusContent)
  | ({ type: 'work.produced'; artifact: ArtifactContent; append?: boolean; lastChunk?: boolean } & Numbered)
  | ({ type: 'work.asked' } & WorkQuestion)
  | ({ type: 'work.needsAuthorization' } & WorkQuestion)
  | { type: 'work.resumed' }

/** A word of work: every event that it sends, except `work.resumed`. */
export type WorkWord = Exclude<WorkEvent, { type: 'work.resumed' }>

/**
 * Events that a task actor receives, other than done and error events of its work. A message is `received` as an
 * answer, `steered` into work that accepts messages while it runs, or `queued` for the work's next question.
 * `task.recover` precedes the restart of work that was running when its process ended; its `message` is for a task that
 * was recovered too often. `recovery.undone` follows when the recovering process shuts down cleanly.
 */
export type TaskMachineEvent =
  | WorkEvent
  | { type: 'work.crashed'; taskId: string; message: MessageContent; crash: Crash }
  | { type: 'task.start'; taskId: string; input: unknown; deadlineAtMs?: number }
  | { type: 'task.recover'; taskId: string; message: MessageContent; recovery: Recovery }
  | { type: 'recovery.undone'; taskId: string }
  | { type: 'task.cancel'; taskId: string; message?: MessageContent }
  | { type: 'task.fail'; taskId: string; message: MessageContent }
  | { type: 'task.reject'; taskId: string; message: MessageContent }
  | ({ type: 'message.received'; taskId: string } & ClientMessage & ParsedAnswer)
  | ({ type: 'message.steered' | 'message.queued'; taskId: string } & ClientMessage)
  | ({ type: 'authorization.received'; taskId: string; data: unknown } & ParsedAnswer)

/**
 * Events that a task forwards to its work. A `queued` message was sent before the question that it is now checked
 * against.
 */
export type ToWork =
  | ({ type: 'message.received'; queued?: true } & ClientMessage & ParsedAnswer)
  | ({ type: 'authorization.received'; data: unknown } & ParsedAnswer)

/** Events that a task emits. The runtime adds time and generation. */
export type TaskFact =
  | ({ type: 'status.changed'; state: TaskState } & StatusContent)
  | ({ type: 'artifact.produced'; artifact: ArtifactContent; append?: boolean; lastChunk?: boolean } & Numbered)
  | { type: 'restart.requested' }
