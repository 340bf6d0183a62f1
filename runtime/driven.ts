import { isQuestion, type Question } from './questions.ts'
import type { WorkEnd } from './work-arguments.ts'
import type { WorkRun } from './work-run.ts'

/** How much a generator may yield before others have their turn. */
const AT_ONCE = 32

/** How much the `finally` blocks of a generator may yield, which nobody hears, before it is left where it is. */
const LAST_WORDS = 1000

type Step = IteratorResult<unknown, WorkEnd>
type MaybeStep = Step | Promise<Step>

/** Has a generator say what it yields, and gives it the answers to what it asks, until it returns or its run is over. */
export async function driven(generator: AsyncGenerator<unknown, WorkEnd, unknown>, run: WorkRun): Promise<WorkEnd> {
  run.onStop(() => finished(generator, run))
  let step = await generator.next()
  const goOn = (answer?: unknown): MaybeStep => (run.isOver ? step : generator.next(answer))
  const fail = (error: unknown): MaybeStep => (run.isOver ? step : generator.throw(error))
  for (let yielded = 1; !step.done && !run.isOver; yielded += 1) {
    step = await heard(step.value, run, goOn, fail)
    if (yielded % AT_ONCE === 0) await run.flow()
  }
  return step.done ? step.value : undefined
}

/** Whether what a work returned is an async generator, to be driven. */
export function isAsyncGenerator(value: unknown): value is AsyncGenerator<unknown, WorkEnd, unknown> {
  return Object.prototype.toString.call(value) === '[object AsyncGenerator]'
}

/** Runs the `finally` blocks of a generator whose task has ended. */
async function finished(generator: AsyncGenerator<unknown, WorkEnd, unknown>, run: WorkRun): Promise<void> {
  let step = await generator.return(undefined)
  for (let yielded = 1; !step.done && yielded < LAST_WORDS; yielded += 1) {
    step = await heard(step.value, run, answer => generator.next(answer), error => generator.throw(error))
    await new Promise(resolve => setImmediate(resolve))
  }
}

/** Says what was yielded, and goes on with the answer to it or with the error that it was met with. */
function heard(word: unknown, run: WorkRun, goOn: (answer?: unknown) => MaybeStep, fail: (error: unknown) => MaybeStep): MaybeStep {
  try {
    if (isQuestion(word)) return answered(word, run).then(goOn, fail)
    run.emit(word)
  } catch (error) {
    return fail(error)
  }
  return goOn()
}

/** Takes a promise more than it needs: a stream that the answer opens begins with the task as the answer left it, before the work has gone on. */
async function answered(question: Question, run: WorkRun): Promise<unknown> {
  return run.ask(question)
}
