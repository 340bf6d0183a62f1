import type { AnyActorLogic, AnyActorRef, AnyActorScope, AnyMachineSnapshot, AnyStateMachine } from 'xstate'
import type { WorkEvent } from '../../machines/task-events.ts'
import { checkContext, endedFor, toOutcome, toWorkEvent } from '../authoring/checked-words.ts'
import { familyOf, hostOf } from '../commits/actor-host.ts'
import { gatedMachine, holdActions, withScope } from '../commits/commit-gate.ts'
import { PrivateProperty } from '../primitives/private-property.ts'
import { atomicStep } from '../xstate/atomic-step.ts'
import { answered, chartQuestion, isGiven, wordsIn, type ChartQuestion } from './chart-question.ts'

/**
 * An author's statechart as the actor `work` of a task: its tags are the life cycle. Entering a state tagged
 * `input-required` or `auth-required` interrupts the task, leaving it resumes, from one question straight to another it
 * resumes and asks again; what it emits is told; its output completes the task, its error fails it, and a final state
 * tagged `failed` or `rejected` ends it so. The state's `meta` has the words: `prompt`, or `reason`.
 */
export function workChart(machine: AnyStateMachine): AnyActorLogic {
  const voices = new PrivateProperty<AnyActorRef, Voice>()
  const gated = gatedMachine(machine)
  const logic = withScope(gated, scope => {
    return { ...holdActions(scope), emit: words => voices.get(scope.self)?.emitted(words, () => scope.emit(words)) }
  })
  const unborn = new WeakSet<AnyActorRef>()
  return {
    ...logic,
    getInitialSnapshot: (scope, input) => {
      voices.set(scope.self, new Voice(scope, undefined))
      try {
        return atomicStep(scope, kept => checkContext(settled(logic.getInitialSnapshot(kept, input))))
      } catch (error) {
        unborn.add(scope.self)
        crash(scope, error)
        return NOTHING
      }
    },
    restoreSnapshot: (persisted, scope) => {
      const snapshot: AnyMachineSnapshot = gated.restoreSnapshot(persisted, scope)
      voices.set(scope.self, new Voice(scope, snapshot))
      return snapshot
    },
    start: (snapshot, scope) => {
      logic.start?.(snapshot, scope)
      voices.get(scope.self)?.comesBack(hostOf(scope.system).isInterrupted(familyOf(scope.self)))
    },
    transition: (before, event, scope) => {
      if (unborn.has(scope.self)) return { ...before, status: 'stopped' }
      if (isGiven(event)) voices.get(scope.self)?.isAnswered('queued' in event)
      try {
        const heard = isGiven(event) ? answered(before, event) : { event }
        // A message that was queued for the question may be no answer to it.
        return 'event' in heard ? atomicStep(scope, kept => checkContext(settled(logic.transition(before, heard.event, kept)), before)) : before
      } catch (error) {
        crash(scope, error)
        return before
      }
    }
  }
}

/** What stands for a chart that broke before it had a state; its task lets go of it at once. */
const NOTHING = { status: 'active', output: undefined, error: undefined, value: {}, context: {}, children: {} } as const

/** What one chart says to its task: after each of its steps, in the order in which a task that works hears all of it. */
class Voice {
  readonly #self: AnyActorRef
  #words: WorkEvent[] = []
  #question: ChartQuestion | undefined
  #failure: { error: unknown } | undefined
  #isAnswered = false
  #hasTakenQueued = false
  readonly #isRestored: boolean

  /** `restored` is where the chart was before a restart: what it said then it does not say again. */
  constructor({ self }: AnyActorScope, restored: AnyMachineSnapshot | undefined) {
    this.#self = self
    this.#isRestored = restored !== undefined
    this.#question = restored && chartQuestion(restored)
    self.subscribe({
      next: (snapshot: AnyMachineSnapshot) => this.#speak(snapshot),
      /* c8 ignore next -- what a chart throws is caught before; should something not be, its task hears of it as its parent */
      error() {}
    })
  }

  /** Has the task follow a chart that has come back with other tags than it had. */
  comesBack(isInterrupted: boolean): void {
    if (!this.#isRestored || isInterrupted === (this.#question !== undefined)) return
    this.#say(this.#question?.event ?? { type: 'work.resumed' })
  }

  /** An answer comes. If it was queued, and the question is still there after it, that is asked, or the next message tried. */
  isAnswered(isQueued: boolean): void {
    this.#isAnswered = true
    this.#hasTakenQueued ||= isQueued
  }

  emitted(words: unknown, emit: () => void): void {
    try {
      this.#words.push(toWorkEvent(words))
      emit()
    } catch (error) {
      this.#failure ??= { error }
    }
  }

  #speak(snapshot: AnyMachineSnapshot): void {
    if ((snapshot as object) === NOTHING) return
    const was = this.#question
    const words = this.#words
    const isOwed = this.#hasTakenQueued
    const isAnswered = this.#isAnswered
    this.#words = []
    this.#isAnswered = false
    this.#hasTakenQueued = false
    try {
      if (this.#failure) throw this.#failure.error
      const is = snapshot.status === 'active' ? chartQuestion(snapshot) : undefined
      this.#question = is
      // What it says to an answer, or on its way to another question, is heard, also if it then asks in the same state again.
      const goesOn = (isAnswered || was?.words !== is?.words) && words.some(({ type }) => type === 'work.progressed')
      if (was && (goesOn || was.states !== is?.states)) this.#say({ type: 'work.resumed' })
      for (const event of words) this.#say(event)
      if (is && (isOwed || goesOn || was?.states !== is.states || was.words !== is.words)) this.#say(is.event)
    } catch (error) {
      crash({ self: this.#self, system: this.#self.system }, error)
    }
  }

  #say(event: WorkEvent): void {
    this.#self._parent?.send(event)
  }
}

/** The chart's end becomes the work's outcome; an error that it began with is thrown like every other. */
function settled(snapshot: AnyMachineSnapshot): AnyMachineSnapshot {
  if (snapshot.status === 'error') throw snapshot.error
  return snapshot.status === 'done' ? concluded(snapshot) : snapshot
}

function concluded(snapshot: AnyMachineSnapshot): AnyMachineSnapshot {
  const state = (['failed', 'rejected'] as const).find(tag => snapshot.hasTag(tag))
  const output = state ? endedFor(state, wordsIn(snapshot, state, 'reason')) : toOutcome(snapshot.output)
  return { ...snapshot, output } as AnyMachineSnapshot
}

/** An error in the author's chart: its task has it start again, or fails. */
function crash({ self, system }: Pick<AnyActorScope, 'self' | 'system'>, error: unknown): void {
  hostOf(system).crash(familyOf(self), error)
}
