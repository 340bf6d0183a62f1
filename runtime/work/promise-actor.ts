import {
  fromPromise as xstateFromPromise,
  type AnyActorRef,
  type PromiseActorLogic,
  type PromiseSnapshot
} from 'xstate'
import type { Step } from '../authoring/work-arguments.ts'
import { familyOf, hostOf, pathOf } from '../commits/actor-host.ts'
import { checkArgument, functionFor } from '../primitives/options.ts'
import { RunJournal, Steps } from './journal.ts'
import { Replay } from './replay.ts'

/** Arguments of a promise creator in a work chart: those of XState, and `step`. */
export interface PromiseArguments<Input> {
  readonly input: Input
  readonly self: AnyActorRef
  readonly system: AnyActorRef['system']
  readonly signal: AbortSignal
  readonly step: Step
}

/** `run` identifies one run of the actor within its task, so that a later run does not reuse its steps. */
type RunSnapshot<Output, Input> = PromiseSnapshot<Output, Input> & {
  readonly run: string
  readonly isRestored?: boolean
}

/**
 * XState's `fromPromise` for actors of a work chart, with `step`. When its task is restored, the promise creator runs again with
 * the same input, and finished steps give their stored results.
 */
export function fromPromise<Output, Input = undefined>(
  create: (given: PromiseArguments<Input>) => PromiseLike<Output>
): PromiseActorLogic<Output, Input> {
  checkArgument(create, functionFor('a function that gives a promise'), 'fromPromise(async ({ input, step }) => …)')
  const logic = xstateFromPromise<Output, Input>(async ({ input, self, system, signal }) => {
    const host = hostOf(system)
    const taskId = familyOf(self)
    const { run, isRestored } = self.getSnapshot() as RunSnapshot<Output, Input>
    const log = new RunJournal(taskId, host)
    if (isRestored) log.follow(new Replay({ events: [], journal: await host.readJournal(taskId) }))
    const steps = new Steps(log, `${run}/`, () => signal)
    try {
      return await create({
        input,
        self,
        system,
        signal,
        step: (name, make) => steps.forAuthor(name, steps.run(name, make))
      })
    } finally {
      if (!signal.aborted) steps.end()
    }
  })
  return {
    ...logic,
    getInitialSnapshot: (scope, input) => {
      const { self, system } = scope
      return {
        ...logic.getInitialSnapshot(scope, input),
        run: `${pathOf(self).join('/')}@${hostOf(system).turnNumber}`
      }
    },
    restoreSnapshot: snapshot => ({ ...(snapshot as RunSnapshot<Output, Input>), isRestored: true }),
    getPersistedSnapshot: snapshot => {
      const { isRestored: _, ...persisted } = snapshot as RunSnapshot<Output, Input>
      return persisted
    }
  }
}
