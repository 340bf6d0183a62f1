import { fromPromise as xstateFromPromise, type AnyActorRef, type PromiseActorLogic, type PromiseSnapshot } from 'xstate'
import type { Step } from '../authoring/work-arguments.ts'
import { familyOf, hostOf, pathOf } from '../commits/actor-host.ts'
import { RunJournal, Steps } from './journal.ts'
import { Replay } from './replay.ts'

/** What a promise of a work chart is made with: what XState gives, and `step`. */
export interface PromiseArguments<Input> {
  readonly input: Input
  readonly self: AnyActorRef
  readonly system: AnyActorRef['system']
  readonly signal: AbortSignal
  readonly step: Step
}

/** `run` names one run of the actor within its task, so that a later one does not find its results. */
type RunSnapshot<Output, Input> = PromiseSnapshot<Output, Input> & { readonly run: string; readonly isRestored?: boolean }

/**
 * XState's `fromPromise` for the actors of a work chart, with `step`: the promise starts again with the same input when
 * its task comes back into memory, and finds the results of the steps that it has made.
 */
export function fromPromise<Output, Input = undefined>(create: (given: PromiseArguments<Input>) => PromiseLike<Output>): PromiseActorLogic<Output, Input> {
  const logic = xstateFromPromise<Output, Input>(async ({ input, self, system, signal }) => {
    const host = hostOf(system)
    const taskId = familyOf(self)
    const { run, isRestored } = self.getSnapshot() as RunSnapshot<Output, Input>
    const log = new RunJournal(taskId, host)
    if (isRestored) log.follow(new Replay({ events: [], journal: await host.readJournal(taskId) }))
    const steps = new Steps(log, `${run}/`, () => signal)
    try {
      return await create({ input, self, system, signal, step: (name, make) => steps.handed(name, steps.run(name, make)) })
    } finally {
      if (!signal.aborted) steps.end()
    }
  })
  return {
    ...logic,
    getInitialSnapshot: (scope, input) => {
      const { self, system } = scope
      return { ...logic.getInitialSnapshot(scope, input), run: `${pathOf(self).join('/')}@${hostOf(system).turnNumber}` }
    },
    restoreSnapshot: snapshot => ({ ...(snapshot as RunSnapshot<Output, Input>), isRestored: true }),
    getPersistedSnapshot: snapshot => {
      const { isRestored: _, ...persisted } = snapshot as RunSnapshot<Output, Input>
      return persisted
    }
  }
}
