import type { AnyActorLogic, AnyActorRef, ErrorActorEvent, Snapshot } from 'xstate'
import type { ToWork, WorkOutcome } from '../../machines/task-events.ts'
import type { TaskContext } from '../../machines/task.machine.ts'
import { OWN_EVENT } from '../../machines/xstate-names.ts'
import { isQuestion, type Question } from '../authoring/questions.ts'
import type { WorkWords } from '../authoring/words.ts'
import type { GeneratorArguments, WorkArguments, WorkEnd, WorkInput } from '../authoring/work-arguments.ts'
import { taskIdOf, hostOf } from '../commits/actor-host.ts'
import { PrivateProperty } from '../primitives/collections.ts'
import { WorkRun, type WorkProgram } from './work-run.ts'

/**
 * Maximum yields of a generator's `finally` blocks after its task has ended. They are dropped, and the generator is
 * then abandoned.
 */
const MAX_CLEANUP_YIELDS = 1000

type Yielded = IteratorResult<unknown, WorkEnd>
type MaybeYielded = Yielded | Promise<Yielded>

/**
 * Runs a generator until it returns or its run is over: sends the words that it yields, and resumes it with answers to
 * its questions.
 */
export async function driveGenerator(
  generator: AsyncGenerator<unknown, WorkEnd, unknown>,
  run: WorkRun
): Promise<WorkEnd> {
  run.onStop(() => runFinallyBlocks(generator, run))
  const { unusedWords } = run
  let step = await unusedWords.run(() => generator.next())
  const goOn = (answer?: unknown): MaybeYielded => (run.isOver ? step : unusedWords.run(() => generator.next(answer)))
  const fail = (error: unknown): MaybeYielded => (run.isOver ? step : unusedWords.run(() => generator.throw(error)))
  for (let yielded = 1; !step.done && !run.isOver; yielded += 1) {
    unusedWords.rest()
    step = await handleYield(step.value, run, goOn, fail)
    const pause = run.pause(yielded)
    if (pause) await pause
  }
  return step.done ? step.value : undefined
}

/** Whether a work function returned an async generator. */
export function isAsyncGenerator(value: unknown): value is AsyncGenerator<unknown, WorkEnd, unknown> {
  return Object.prototype.toString.call(value) === '[object AsyncGenerator]'
}

/** Runs the `finally` blocks of a generator whose task has ended. */
async function runFinallyBlocks(generator: AsyncGenerator<unknown, WorkEnd, unknown>, run: WorkRun): Promise<void> {
  let step = await generator.return(undefined)
  for (let yielded = 1; !step.done && yielded < MAX_CLEANUP_YIELDS; yielded += 1) {
    step = await handleYield(
      step.value,
      run,
      answer => generator.next(answer),
      error => generator.throw(error)
    )
    await new Promise(resolve => setImmediate(resolve))
  }
}

/** Sends a yielded word, or opens a yielded question, and resumes the generator with the answer or the error. */
function handleYield(
  word: unknown,
  run: WorkRun,
  goOn: (answer?: unknown) => MaybeYielded,
  fail: (error: unknown) => MaybeYielded
): MaybeYielded {
  try {
    if (isQuestion(word)) return askLater(word, run).then(goOn, fail)
    run.emit(word)
  } catch (error) {
    return fail(error)
  }
  return goOn()
}

/**
 * The extra promise delays the work, so that a stream opened by the answer starts with the task as the answer left it.
 */
async function askLater(question: Question, run: WorkRun): Promise<unknown> {
  return run.ask(question)
}

/**
 * Work as a function. Its return value completes the task. If it throws, the restart policy decides whether it runs
 * again or the task fails.
 */
export type WorkFunction<Input = unknown, Terms = Record<string, unknown> | undefined> = (
  work: WorkArguments<Input, Terms>
) => WorkEnd | Promise<WorkEnd>

/**
 * `isRestored`: the actor was restored from the store, so its run is not the first. `isWaiting`: the work only waits
 * for an answer, so it may leave memory.
 */
type RunnerSnapshot = Snapshot<WorkOutcome> & {
  readonly input: WorkInput | undefined
  readonly isRestored: boolean
  readonly isWaiting?: boolean
}

/** A class, because a getter in an object literal retains its closure for long: CONTRIBUTING.md has the figure. */
class ActiveRun {
  readonly status = 'active'
  readonly output = undefined
  readonly error = undefined
  readonly input: WorkInput | undefined
  readonly isRestored: boolean
  readonly #self: AnyActorRef

  constructor(self: AnyActorRef, input: WorkInput | undefined, isRestored: boolean) {
    this.#self = self
    this.input = input
    this.isRestored = isRestored
  }

  get isWaiting(): boolean {
    return runs.get(this.#self)?.isWaiting === true
  }
}

/** The end of a run. It is a class so that the author's actors cannot forge one. */
class WorkEnded {
  readonly type = 'work.ended'
  readonly outcome: WorkOutcome

  constructor(outcome: WorkOutcome) {
    this.outcome = outcome
  }
}

/** Shared by all copies of this package in the process, by its global symbol. */
const runs = new PrivateProperty<AnyActorRef, WorkRun>(Symbol.for('taskchart.run.1'))

/** The run of a task's `work` actor; `undefined` if the work is a chart. */
export function runOf(work: AnyActorRef): WorkRun | undefined {
  return runs.get(work)
}

/** A work function as the actor `work` of a task. If it returns an async generator, that is run as a work generator. */
export function workFunction(work: WorkFunction): AnyActorLogic {
  return workRunner(programOf(work))
}

/** The program that a run of a work function or generator calls. */
export function programOf(work: WorkFunction | WorkGenerator): WorkProgram {
  return (given, run) => {
    const returned = work(given)
    return isAsyncGenerator(returned) ? driveGenerator(returned, run) : returned
  }
}

/**
 * A program as the actor `work` of a task. Each start of the actor runs it from the beginning, in a new {@link
 * WorkRun}.
 */
export function workRunner(program: WorkProgram): AnyActorLogic {
  return {
    getInitialSnapshot: ({ self }, input?: WorkInput): RunnerSnapshot => new ActiveRun(self, input, false),
    restoreSnapshot: (_, { self }): RunnerSnapshot => new ActiveRun(self, undefined, true),
    start: ({ input, isRestored }: RunnerSnapshot, scope) => {
      const { self, system } = scope
      const run = new WorkRun({
        scope,
        program,
        isRerun: isRestored || restartsOf(self) > 0,
        ended: outcome => self.send(new WorkEnded(outcome))
      })
      runs.set(self, run)
      // If the task has ended before this commit, the work does not run.
      hostOf(system).afterCommit({
        taskId: taskIdOf(self),
        run: () => self.getSnapshot().status === 'active' && run.begin(input)
      })
    },
    transition: (
      snapshot: RunnerSnapshot,
      event: ToWork | WorkEnded | { type: typeof OWN_EVENT.stop } | ErrorActorEvent,
      scope
    ) => {
      const { self, system } = scope
      const host = hostOf(system)
      host.markChanged(taskIdOf(self))
      if (event instanceof WorkEnded) return { ...snapshot, status: 'done', output: event.outcome, input: undefined }
      switch (event.type) {
        case 'message.received':
        case 'authorization.received':
          scope.defer(() => runs.get(self)?.receive(event))
          return snapshot
        case OWN_EVENT.stop:
          host.afterCommit({ taskId: taskIdOf(self), run: () => runs.get(self)?.stop() })
          return { ...snapshot, status: 'stopped', input: undefined }
        default:
          // Done and error events of spawned actors. Work that waits for one has subscribed to it.
          if ('error' in event)
            host.logger.error('an actor that a work spawned failed', { taskId: taskIdOf(self), error: event.error })
          return snapshot
      }
    },
    // The rest of a run is already in the store: its input in the task, its words in the log, everything else in the
    // journal.
    getPersistedSnapshot: ({ status, output, error }) => ({ status, output, error })
  } satisfies AnyActorLogic as AnyActorLogic
}

function restartsOf(work: AnyActorRef): number {
  const task = work._parent?.getSnapshot() as { context: TaskContext }
  return task.context.restarts.length
}

/**
 * Work as an async generator. It yields words, and asks with `yield*`, which gives the answer. Its return value
 * completes the task. If the task ends first, its `finally` blocks run.
 */
export type WorkGenerator<Input = unknown, Terms = Record<string, unknown> | undefined> = (
  work: GeneratorArguments<Input, Terms>
) => AsyncGenerator<WorkWords | Question, WorkEnd>

/** A work generator as the actor `work` of a task. */
export function workGenerator(work: WorkGenerator): AnyActorLogic {
  return workRunner((given, run) => driveGenerator(work(given), run))
}

/** Whether work is an async generator function. Any other function is called and awaited. */
export function isGenerator(work: (...args: never[]) => unknown): work is WorkGenerator {
  return Object.prototype.toString.call(work) === '[object AsyncGeneratorFunction]'
}
