import type { AnyActorLogic, AnyActorRef, ErrorActorEvent, Snapshot } from 'xstate'
import type { ToWork, WorkOutcome } from '../../machines/task-events.ts'
import type { TaskContext } from '../../machines/task.machine.ts'
import { isQuestion, type Question } from '../authoring/questions.ts'
import type { WorkWords } from '../authoring/words.ts'
import type { WorkArguments, WorkEnd, WorkInput } from '../authoring/work-arguments.ts'
import { familyOf, hostOf } from '../commits/actor-host.ts'
import { PrivateProperty } from '../primitives/private-property.ts'
import { WorkRun, type WorkProgram } from './work-run.ts'

/** How much a generator may yield before others have their turn. */
const AT_ONCE = 32

/** How much the `finally` blocks of a generator may yield, which nobody hears, before it is left where it is. */
const LAST_WORDS = 1000

type Step = IteratorResult<unknown, WorkEnd>
type MaybeStep = Step | Promise<Step>

/** Has a generator say what it yields, and gives it the answers to what it asks, until it returns or its run is over. */
export async function driveGenerator(generator: AsyncGenerator<unknown, WorkEnd, unknown>, run: WorkRun): Promise<WorkEnd> {
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

/** Work as a function: what it returns completes the task, what it throws fails it, or has it start again. */
export type WorkFunction<Input = unknown, Terms = Record<string, unknown> | undefined> = (work: WorkArguments<Input, Terms>) => WorkEnd | Promise<WorkEnd>

/**
 * `isRestored`: it was in memory before, so that its run is not the first. `isWaiting`: the work has asked and does nothing
 * else, so that it may leave memory.
 */
type RunnerSnapshot = Snapshot<WorkOutcome> & { readonly input: WorkInput | undefined; readonly isRestored: boolean; readonly isWaiting?: boolean }

/** A class, since a getter in a literal keeps what it sees in memory for long: CONTRIBUTING.md has the figure. */
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

/** The end of a run. A class, so that no actor of the author's can send one. */
class WorkEnded {
  readonly type = 'work.ended'
  readonly outcome: WorkOutcome

  constructor(outcome: WorkOutcome) {
    this.outcome = outcome
  }
}

/** The same for all copies of this package in the process, as the hosts are. */
const runs = new PrivateProperty<AnyActorRef, WorkRun>(Symbol.for('taskchart.run.1'))

/** The run behind the actor `work` of a task; none if the work is a chart. */
export function runOf(work: AnyActorRef): WorkRun | undefined {
  return runs.get(work)
}

/** A work function as the actor `work` of a task. One that returns an async generator is a generator as well. */
export function workFunction(work: WorkFunction): AnyActorLogic {
  return workRunner((given, run) => {
    const returned = work(given)
    return isAsyncGenerator(returned) ? driveGenerator(returned, run) : returned
  })
}

/** A program as the actor `work` of a task: it runs from its start, in one {@link WorkRun} each time that the actor starts. */
export function workRunner(program: WorkProgram): AnyActorLogic {
  return {
    getInitialSnapshot: ({ self }, input?: WorkInput): RunnerSnapshot => new ActiveRun(self, input, false),
    restoreSnapshot: (_, { self }): RunnerSnapshot => new ActiveRun(self, undefined, true),
    start: ({ input, isRestored }: RunnerSnapshot, scope) => {
      const { self, system } = scope
      const run = new WorkRun({ scope, program, isRerun: isRestored || restartsOf(self) > 0, ended: outcome => self.send(new WorkEnded(outcome)) })
      runs.set(self, run)
      // A work whose task has been ended before it could begin never begins.
      hostOf(system).afterCommit({ taskId: familyOf(self), run: () => self.getSnapshot().status === 'active' && run.begin(input) })
    },
    transition: (snapshot: RunnerSnapshot, event: ToWork | WorkEnded | { type: 'xstate.stop' } | ErrorActorEvent, { self, system, defer }) => {
      const host = hostOf(system)
      host.noteMove(familyOf(self))
      if (event instanceof WorkEnded) return { ...snapshot, status: 'done', output: event.outcome, input: undefined }
      switch (event.type) {
        case 'message.received':
        case 'authorization.received':
          defer(() => runs.get(self)?.receive(event))
          return snapshot
        case 'xstate.stop':
          host.afterCommit({ taskId: familyOf(self), run: () => runs.get(self)?.stop() })
          return { ...snapshot, status: 'stopped', input: undefined }
        default:
          // The actors that the work has spawned tell it of their ends: who waits for one has subscribed to it.
          if ('error' in event) host.logger.error('an actor that a work spawned failed', { taskId: familyOf(self), error: event.error })
          return snapshot
      }
    },
    // Everything else that a run knows is in the store: its input in the task, its words in the log, the rest in the journal.
    getPersistedSnapshot: ({ status, output, error }) => ({ status, output, error })
  } satisfies AnyActorLogic as AnyActorLogic
}

function restartsOf(work: AnyActorRef): number {
  const task = work._parent?.getSnapshot() as { context: TaskContext }
  return task.context.restarts.length
}

/**
 * Work as an async generator: it yields what it says, and what it asks with `yield*`, which gives the answer; what it
 * returns completes the task. When the task ends before it does, its `finally` blocks run.
 */
export type WorkGenerator<Input = unknown, Terms = Record<string, unknown> | undefined> = (work: WorkArguments<Input, Terms>) => AsyncGenerator<WorkWords | Question, WorkEnd>

/** A work generator as the actor `work` of a task. */
export function workGenerator(work: WorkGenerator): AnyActorLogic {
  return workRunner((given, run) => driveGenerator(work(given), run))
}

/** Whether work is an async generator function; every other function is called and awaited. */
export function isGenerator(work: (...args: never[]) => unknown): work is WorkGenerator {
  return Object.prototype.toString.call(work) === '[object AsyncGeneratorFunction]'
}
