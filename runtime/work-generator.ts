import type { AnyActorLogic } from 'xstate'
import { driven } from './driven.ts'
import type { Question } from './questions.ts'
import type { WorkArguments, WorkEnd } from './work-arguments.ts'
import { workRunner } from './work-runner.ts'
import type { WorkWords } from './words.ts'

/**
 * Work as an async generator: it yields what it says, and what it asks with `yield*`, which gives the answer; what it
 * returns completes the task. When the task ends before it does, its `finally` blocks run.
 */
export type WorkGenerator<Input = unknown, Terms = Record<string, unknown> | undefined> = (work: WorkArguments<Input, Terms>) => AsyncGenerator<WorkWords | Question, WorkEnd>

/** A work generator as the actor `work` of a task. */
export function workGenerator(work: WorkGenerator): AnyActorLogic {
  return workRunner((given, run) => driven(work(given), run))
}

/** Whether work is an async generator function; every other function is called and awaited. */
export function isGenerator(work: (...args: never[]) => unknown): work is WorkGenerator {
  return Object.prototype.toString.call(work) === '[object AsyncGeneratorFunction]'
}
