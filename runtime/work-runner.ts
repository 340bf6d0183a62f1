import type { AnyActorLogic, AnyActorRef, ErrorActorEvent, Snapshot } from 'xstate'
import type { TaskContext } from '../machines/task.machine.ts'
import type { ToWork, WorkOutcome } from '../machines/task-events.ts'
import { familyOf, hostOf } from './actor-host.ts'
import type { WorkArguments, WorkEnd } from './work-arguments.ts'
import { driven, isAsyncGenerator } from './driven.ts'
import { KeptWith } from './kept-with.ts'
import type { WorkInput } from './work-input.ts'
import { WorkRun, type WorkProgram } from './work-run.ts'

/** Work as a function: what it returns completes the task, what it throws fails it, or has it start again. */
export type WorkFunction<Input = unknown, Terms = Record<string, unknown> | undefined> = (work: WorkArguments<Input, Terms>) => WorkEnd | Promise<WorkEnd>

/**
 * `isRestored`: it was in memory before, so that its run is not the first. `isWaiting`: the work has asked and does nothing
 * else, so that it may leave memory.
 */
type RunnerSnapshot = Snapshot<WorkOutcome> & { readonly input: WorkInput | undefined; readonly isRestored: boolean; readonly isWaiting?: boolean }

/** A class, since a literal with a getter has a hidden class to itself, which keeps alive what the getter sees. */
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
const runs = new KeptWith<AnyActorRef, WorkRun>(Symbol.for('taskchart.run.1'))

/** The run behind the actor `work` of a task; none if the work is a chart. */
export function runOf(work: AnyActorRef): WorkRun | undefined {
  return runs.get(work)
}

/** A work function as the actor `work` of a task. One that returns an async generator is a generator as well. */
export function workFunction(work: WorkFunction): AnyActorLogic {
  return workRunner((given, run) => {
    const returned = work(given)
    return isAsyncGenerator(returned) ? driven(returned, run) : returned
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
