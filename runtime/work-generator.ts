import type { AnyActorLogic } from 'xstate'
import { isQuestion, type Question } from './questions.ts'
import type { WorkArguments, WorkEnd } from './work-arguments.ts'
import type { WorkRun } from './work-run.ts'
import { workRunner } from './work-runner.ts'
import type { WorkWords } from './words.ts'

/**
 * Work as an async generator: it yields what it says, and what it asks with `yield*`, which gives the answer; what it
 * returns completes the task. When the task ends before it does, its `finally` blocks run.
 */
// oxlint-disable-next-line typescript/no-explicit-any -- what a generator takes back differs from question to question
export type WorkGenerator = (work: WorkArguments) => AsyncGenerator<WorkWords | Question, WorkEnd, any>

/** A work generator as the actor `work` of a task. */
export function workGenerator(work: WorkGenerator): AnyActorLogic {
  return workRunner((given, run) => {
    const generator = work(given)
    run.onStop(() => generator.return(undefined))
    return drive(generator, run)
  })
}

/** Whether work is an async generator function; every other function is called and awaited. */
export function isGenerator(work: (...args: never[]) => unknown): work is WorkGenerator {
  return Object.prototype.toString.call(work) === '[object AsyncGeneratorFunction]'
}

async function drive(generator: AsyncGenerator<unknown, WorkEnd, unknown>, run: WorkRun): Promise<WorkEnd> {
  let step = await generator.next()
  while (!step.done) {
    const word = step.value
    step = await heard(word, run).then(
      answer => generator.next(answer),
      error => generator.throw(error)
    )
  }
  return step.value
}

async function heard(word: unknown, run: WorkRun): Promise<unknown> {
  if (isQuestion(word)) return run.ask(word)
  run.emit(word)
  return run.flow()
}
