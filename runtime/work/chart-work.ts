import type { AnyActorLogic, AnyActorRef, AnyActorScope, AnyMachineSnapshot, AnyStateMachine } from 'xstate'
import type { WorkEvent } from '../../machines/task-events.ts'
import { checkContext, endedFor, toOutcome, toWorkEvent } from '../authoring/checked-words.ts'
import { familyOf, hostOf } from '../commits/actor-host.ts'
import { gatedMachine, HELD_ACTIONS, withScope } from '../commits/commit-gate.ts'
import { PrivateProperty } from '../primitives/private-property.ts'
import { atomicStep } from '../xstate/actor-scope.ts'
import type { TransitionCounter } from '../xstate/transition-counter.ts'
import { ArtifactChunks } from './artifact-chunks.ts'
import { answered, chartQuestion, isGiven, wordsIn, type ChartQuestion } from './chart-question.ts'

/**
 * An author's statechart as the actor `work` of a task. Its tags drive the task's life cycle: entering a state tagged
 * `input-required` or `auth-required` interrupts the task, and leaving it resumes the task. A transition from one question to
 * another resumes and asks again. Emitted words become events of the task. The chart's output completes the task, its error
 * fails it, and a final state tagged `failed` or `rejected` ends it in that state. The state's `meta` has the message: `prompt`
 * or `reason`.
 */
export function workChart(machine: AnyStateMachine, counter?: TransitionCounter): AnyActorLogic {
  const reporters = new PrivateProperty<AnyActorRef, TaskReporter>()
  const gated = gatedMachine(machine, counter)
  const logic = withScope(gated, { actionExecutor: (scope, action) => {
    // A word that is not valid throws here, so that the transition which emits it fails as a whole.
    if (action.type === 'xstate.emit') reporters.get(scope.self)?.hold((action.params as { event: unknown }).event)
    HELD_ACTIONS.actionExecutor(scope, action)
  } }, counter)
  const failedAtStart = new WeakSet<AnyActorRef>()
  return {
    ...logic,
    getInitialSnapshot: (scope, input) => {
      reporters.set(scope.self, new TaskReporter(scope, undefined))
      try {
        return atomicStep(scope, kept => checkContext(settled(logic.getInitialSnapshot(kept, input))))
      } catch (error) {
        failedAtStart.add(scope.self)
        crash(scope, error)
        return NO_SNAPSHOT
      }
    },
    restoreSnapshot: (persisted, scope) => {
      const snapshot: AnyMachineSnapshot = gated.restoreSnapshot(persisted, scope)
      reporters.set(scope.self, new TaskReporter(scope, snapshot))
      return snapshot
    },
    start: (snapshot, scope) => {
      logic.start?.(snapshot, scope)
      reporters.get(scope.self)?.resume(hostOf(scope.system).isInterrupted(familyOf(scope.self)))
    },
    transition: (before, event, scope) => {
      if (failedAtStart.has(scope.self)) return { ...before, status: 'stopped' }
      if (crashed.has(scope.self) && event.type !== 'xstate.stop') return before
      if (isGiven(event)) reporters.get(scope.self)?.noteAnswer('queued' in event)
      try {
        const heard = isGiven(event) ? answered(before, event) : { event }
        // A queued message may turn out to be invalid as an answer; then the chart stays where it is.
        return 'event' in heard ? atomicStep(scope, kept => checkContext(settled(logic.transition(before, heard.event, kept)), before)) : before
      } catch (error) {
        reporters.get(scope.self)?.drop()
        crash(scope, error)
        return before
      }
    }
  }
}

/** Snapshot of a chart that threw before it had a state. Its task stops it at once. */
const NO_SNAPSHOT = { status: 'active', output: undefined, error: undefined, value: {}, context: {}, children: {} } as const

/** Sends a chart's words and questions to its task after each transition, in an order in which a working task accepts all of them. */
class TaskReporter {
  readonly #self: AnyActorRef
  #words: WorkEvent[] = []
  /** Created by the first artifact. */
  #chunks: ArtifactChunks | undefined
  #question: ChartQuestion | undefined
  #isAnswered = false
  #hasTakenQueued = false
  readonly #isRestored: boolean

  /** `restored` is the snapshot of a restored chart, whose question has been reported already. */
  constructor({ self }: AnyActorScope, restored: AnyMachineSnapshot | undefined) {
    this.#self = self
    this.#isRestored = restored !== undefined
    this.#question = restored && chartQuestion(restored)
    self.subscribe({
      next: (snapshot: AnyMachineSnapshot) => this.#report(snapshot),
      /* c8 ignore next -- errors of a chart are caught before; any other reaches the task, which is the actor's parent */
      error() {}
    })
  }

  /** Interrupts or resumes the task, if the restored chart's tags differ from the task's state. */
  resume(isInterrupted: boolean): void {
    if (!this.#isRestored || isInterrupted === (this.#question !== undefined)) return
    this.#send(this.#question?.event ?? { type: 'work.resumed' })
  }

  /** Notes an answer before its transition. If a queued one leaves the question open, the question is asked, or the next queued message tried. */
  noteAnswer(isQueued: boolean): void {
    this.#isAnswered = true
    this.#hasTakenQueued ||= isQueued
  }

  /** Holds a word until its transition is complete. */
  hold(words: unknown): void {
    const word = toWorkEvent(words)
    this.#words.push(word.type === 'work.produced' ? (this.#chunks ??= new ArtifactChunks(this.#isRestored)).next(word) : word)
  }

  /** Drops the words of a transition that failed. */
  drop(): void {
    this.#words = []
  }

  #report(snapshot: AnyMachineSnapshot): void {
    if ((snapshot as object) === NO_SNAPSHOT) return
    const was = this.#question
    const words = this.#words
    const isOwed = this.#hasTakenQueued
    const isAnswered = this.#isAnswered
    this.#words = []
    this.#isAnswered = false
    this.#hasTakenQueued = false
    try {
      const is = snapshot.status === 'active' ? chartQuestion(snapshot) : undefined
      this.#question = is
      // Progress after an answer, or between two questions, resumes the task first, even if the same state asks again.
      const goesOn = (isAnswered || was?.words !== is?.words) && words.some(({ type }) => type === 'work.progressed')
      if (was && (goesOn || was.states !== is?.states)) this.#send({ type: 'work.resumed' })
      for (const event of words) this.#send(event)
      if (is && (isOwed || goesOn || was?.states !== is.states || was.words !== is.words)) this.#send(is.event)
    } catch (error) {
      crash({ self: this.#self, system: this.#self.system }, error)
    }
  }

  #send(event: WorkEvent): void {
    this.#self._parent?.send(event)
  }
}

/** Turns a done snapshot's output into the work's outcome, and throws the error of a failed one. */
function settled(snapshot: AnyMachineSnapshot): AnyMachineSnapshot {
  if (snapshot.status === 'error') throw snapshot.error
  return snapshot.status === 'done' ? concluded(snapshot) : snapshot
}

function concluded(snapshot: AnyMachineSnapshot): AnyMachineSnapshot {
  const state = (['failed', 'rejected'] as const).find(tag => snapshot.hasTag(tag))
  const output = state ? endedFor(state, wordsIn(snapshot, state, 'reason')) : toOutcome(snapshot.output)
  return { ...snapshot, output } as AnyMachineSnapshot
}

/** Charts with an error, which take no more events until they are stopped. */
const crashed = new WeakSet<AnyActorRef>()

/** Reports an error in the author's chart. The restart policy decides whether the work restarts or the task fails. */
function crash({ self, system }: Pick<AnyActorScope, 'self' | 'system'>, error: unknown): void {
  crashed.add(self)
  hostOf(system).crash(familyOf(self), error)
}
