import type { ActorRefFrom, AnyActorLogic, InputFrom } from 'xstate'
import type { Task } from '../machines/protocol/objects.ts'
import type { Question } from './questions.ts'
import type { Scope } from './store.ts'
import type { WorkInput } from './work-input.ts'
import type { Failed, Rejected, WorkResult, WorkWords } from './words.ts'

/** What a step is called with. */
export interface StepArguments {
  /** The same at every try of this step, also after a restart: for services that take a request once by such a key. */
  readonly idempotencyKey: string
  readonly signal: AbortSignal
}

/**
 * Runs `run` and keeps its result, a JSON value, so that it does not run again when the work does. One that throws has no
 * result. Steps are told apart by their names, those of one name by their order.
 */
export type Step = <T>(name: string, run: (step: StepArguments) => T | Promise<T>) => Promise<T>

/** What work as a function or as a generator is called with. */
export interface WorkArguments<Terms = Record<string, unknown> | undefined> extends Omit<WorkInput, 'terms'> {
  /** What a negotiation agreed upon: there always, if the agent's `negotiate` is a `negotiation`. */
  readonly terms: Terms
  /** Aborts when the task is canceled or ends in another way, and when the work leaves memory to run again later. */
  readonly signal: AbortSignal
  /** Says how the work is getting on, or hands over an artifact or a chunk of one. Generators yield it instead. */
  readonly emit: (words: WorkWords) => void
  /** Asks, and resolves with the answer. One question at a time. Generators yield it instead: `yield* inputRequired(…)`. */
  readonly ask: <Answer>(question: Question<Answer>) => Promise<Answer>
  readonly step: Step
  /** Whose task it is: the tenant, and the principal who opened it. */
  readonly owner: Scope
  /** Reads the task as it is committed: everything up to the answer that was given last. */
  readonly readTask: () => Promise<Task>
  /** Waits, also across restarts; in milliseconds, of any length. */
  readonly sleep: (ms: number) => Promise<void>
  /** Starts a child actor, which stops with the work. It is started again when the work runs again. */
  readonly spawn: <Logic extends AnyActorLogic>(logic: Logic, options?: { id?: string; input?: InputFrom<Logic> }) => ActorRefFrom<Logic>
}

/** How work may end: what it returns. */
export type WorkEnd = WorkResult | Rejected | Failed | void
