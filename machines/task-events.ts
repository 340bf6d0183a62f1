import type { Artifact } from './protocol/objects.ts'
import type { Message } from './protocol/parts.ts'
import type { RequestDetails } from './protocol/requests.ts'
import type { TaskState } from './protocol/states.ts'
import type { Crash, Recovery } from './supervision.ts'

/** What is said in a message, before the runtime gives it its ids and role (§4.1.4). */
export type MessageContent = Pick<Message, 'parts' | 'metadata' | 'extensions'>

/** What an artifact holds, before the runtime gives it an id where the author gave none (§4.1.7). */
export type ArtifactContent = Omit<Artifact, 'artifactId'> & { artifactId?: string }

/** How work ended: its artifacts and last words, or why it was given up. */
export type WorkOutcome =
  | { state: 'completed'; artifacts: ArtifactContent[]; message?: MessageContent; metadata?: Record<string, unknown> }
  | { state: 'failed' | 'rejected'; message: MessageContent; metadata?: Record<string, unknown> }

/** Where a word stands among all that a work says, from 1: by it a work that runs again finds what it has said. */
export type Numbered = { ordinal?: number }

/** Words with a status, and what goes with them. */
export type Said = Numbered & { message?: MessageContent; metadata?: Record<string, unknown> }

/** A client's message, with the metadata and configuration of its request, if it has them. */
export type Received = { message: Message; request?: RequestDetails }

/** What the open question makes of what came, if it was checked on the way: an event that has an answer is not checked again. */
export type Answered = { answer?: unknown }

/** What work may say to its task while it lasts. */
export type WorkEvent =
  | ({ type: 'work.progressed' } & Said)
  | ({ type: 'work.produced'; artifact: ArtifactContent; append?: boolean; lastChunk?: boolean } & Numbered)
  | ({ type: 'work.asked'; message: MessageContent } & Said)
  | ({ type: 'work.needsAuthorization'; message: MessageContent } & Said)
  | { type: 'work.resumed' }

/** A word of work: everything that it says, apart from going on. */
export type WorkWord = Exclude<WorkEvent, { type: 'work.resumed' }>

/**
 * Everything that a task actor receives, apart from the end of its work. A message is `received` as an answer, `steered`
 * into work that takes messages while it goes on, or `queued` for the work's next question. `task.recover` comes before
 * work is started again that was at work when its process ended, with the words for a task that has been recovered too
 * often; `recovery.undone` when the process in which it was recovered ends in order.
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
  | ({ type: 'message.received'; taskId: string } & Received & Answered)
  | ({ type: 'message.steered' | 'message.queued'; taskId: string } & Received)
  | ({ type: 'authorization.received'; taskId: string; data: unknown } & Answered)

/** What a task passes on to its work. A `queued` message was not an answer to the question that it meets. */
export type ToWork = ({ type: 'message.received'; queued?: true } & Received & Answered) | ({ type: 'authorization.received'; data: unknown } & Answered)

/** What a task tells the world: facts without time or number, which the runtime stamps. */
export type TaskFact =
  | ({ type: 'status.changed'; state: TaskState } & Said)
  | ({ type: 'artifact.produced'; artifact: ArtifactContent; append?: boolean; lastChunk?: boolean } & Numbered)
  | { type: 'restart.requested' }
