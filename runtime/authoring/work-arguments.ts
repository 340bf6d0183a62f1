import type { ActorRefFrom, AnyActorLogic, InputFrom } from 'xstate'
import type { Artifact, Task } from '../../machines/protocol/objects.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import type { RequestDetails } from '../../machines/protocol/requests.ts'
import type { Scope } from '../store/store.ts'
import type { Question } from './questions.ts'
import type { Failed, Rejected, WorkResult, WorkWords } from './words.ts'

/** An artifact of another task of the caller's. */
export interface EarlierArtifact {
  readonly taskId: string
  readonly artifact: Artifact
}

/** What work is given when it starts. `Input` is what its agent's `input` schema gives, `Terms` what it negotiates about. */
export interface WorkInput<Input = unknown, Terms = Record<string, unknown>> {
  readonly taskId: string
  readonly contextId: string
  /** The message that opened the task. */
  readonly message: Message
  /**
   * The metadata and configuration of that message's request (§3.2.1): `metadata`, the `acceptedOutputModes` of the client,
   * `returnImmediately` and `historyLength`. Work that runs again gets the same.
   */
  readonly request: RequestDetails
  /** That message as the agent's `input` schema gives it; `undefined` if the agent has none. */
  readonly input: Input
  /** What a negotiation agreed upon, if there was one with terms. */
  readonly terms?: Terms | undefined
  /** The agent's own extensions that the client had activated for that message, by their URIs (§4.6). */
  readonly extensions: readonly string[]
  /** The tasks that the message refers to (`referenceTaskIds`), as far as the caller may see them and they are loaded. */
  readonly referenceTasks: Task[]
  /**
   * The ids of tasks that belong to `referenceTasks`, or whose artifacts belong to `earlierArtifacts`, but that are not loaded: they
   * are over `limits.referencedTasks` or `limits.referencedBytes`. Load one at a time, with `readTask(id)`. The one with the
   * latest status comes first.
   */
  readonly unloadedTasks: readonly string[]
  /**
   * The artifacts that the message may mean: those that its parts name; else those of the tasks that it refers to; else, or
   * if these have none, those of the context's newest tasks. Newest first: those of the task that completed last stand in
   * front, whichever began first; at the end those of tasks that have not completed, whose artifacts may not be whole.
   */
  readonly earlierArtifacts: EarlierArtifact[]
}

/** What a step is called with. */
export interface StepArguments {
  /** The same at every try of this step, also after a restart: for services that take a request once by such a key. */
  readonly idempotencyKey: string
  readonly signal: AbortSignal
}

/** What a step of work as a function or as a generator is called with. */
export interface WorkStepArguments extends StepArguments {
  /**
   * Says what belongs to the step, as the chunks of an artifact that a model is making: it is said again when the step
   * runs again, for which an artifact is to be begun without `append`, and never once the step has its result. Words that
   * are said within a step in another way are missed when the work runs again.
   */
  readonly emit: (words: WorkWords) => void
}

/**
 * Runs `run` and keeps its result, a JSON value, so that it does not run again when the work does. One that throws has no
 * result. Steps are told apart by their names, those of one name by their order.
 */
export type Step<Given = StepArguments> = <T>(name: string, run: (step: Given) => T | Promise<T>) => Promise<T>

/** A client's message, with the metadata and configuration of its request: an empty `request` if it has neither. */
export interface ReceivedMessage {
  readonly message: Message
  readonly request: RequestDetails
}

/** What work as a function or as a generator is called with. `Input` is what its agent's `input` schema gives, `Terms` what it negotiates about. */
export interface WorkArguments<Input = unknown, Terms = Record<string, unknown> | undefined> extends Omit<WorkInput<Input>, 'terms'> {
  /** What a negotiation agreed upon: there always, if the agent's `negotiate` is a `negotiation`. */
  readonly terms: Terms
  /** Aborts when the task is canceled or ends in another way, and when the work leaves memory to run again later. */
  readonly signal: AbortSignal
  /** Says how the work is getting on, or hands over an artifact or a chunk of one. Generators yield it instead. */
  readonly emit: (words: WorkWords) => void
  /** Asks, and resolves with the answer. One question at a time. Generators yield it instead: `yield* inputRequired(…)`. */
  readonly ask: <Answer>(question: Question<Answer>) => Promise<Answer>
  /**
   * Gives the message that answered the last question, with the metadata and configuration of its request. `undefined`
   * before the first answer. An authorization that arrives out of band is no message.
   */
  readonly lastAnswer: () => ReceivedMessage | undefined
  readonly step: Step<WorkStepArguments>
  /** Whose task it is: the tenant, and the principal who opened it. */
  readonly owner: Scope
  /**
   * Reads the task as it is committed: everything up to the answer that was given last. With an id it reads another task of
   * the caller's; TaskNotFound if there is none.
   */
  readonly readTask: (taskId?: string) => Promise<Task>
  /**
   * Waits, also across restarts, until another task of the caller's has completed, and gives it as it is then, with its
   * artifacts. One that will not complete is thrown as an error that fails this task, unless it is caught, with a reason for
   * the client: UnsupportedOperation with the task's `state` in its `metadata` if it ended otherwise, TaskNotFound if there
   * is none, RateLimited if it is too large: all tasks that one work gets here hold at most `limits.referencedBytes`. It may wait for long: for a task that waits for its client; `deadlineMs` of the agent ends that.
   */
  readonly completed: (task: Task | string) => Promise<Task>
  /**
   * Reads the newest messages of the context before the one that opened the task, oldest first; 50 unless told. Those of
   * the client are all there, and those of the agent: its replies, and what it said in tasks that had ended by then.
   * Work that runs again reads the same, as far as nothing was removed.
   */
  readonly history: (limit?: number) => Promise<Message[]>
  /** Waits, also across restarts; in milliseconds, of any length. */
  readonly sleep: (ms: number) => Promise<void>
  /** Starts a child actor, which stops with the work. It is started again when the work runs again. */
  readonly spawn: <Logic extends AnyActorLogic>(logic: Logic, options?: { id?: string; input?: InputFrom<Logic> }) => ActorRefFrom<Logic>
}

/** How work may end: what it returns. */
export type WorkEnd = WorkResult | Rejected | Failed | void

/** The parts of the call that opened a task which its work gets beside the message. */
export type Opened = Pick<WorkInput, 'extensions' | 'request'>

/** Reads those parts. */
export type ReadOpened = () => Opened | Promise<Opened>
