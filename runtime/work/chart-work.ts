import type { AnyActorLogic, AnyActorRef, AnyActorScope, AnyMachineSnapshot, AnyStateMachine } from 'xstate'
import type { WorkEvent } from '../../machines/task-events.ts'
import type { TaskContext } from '../../machines/task.machine.ts'
import { OWN_EVENT } from '../../machines/xstate-names.ts'
import { checkContext, endedFor, toOutcome, toWorkEvent } from '../authoring/checked-words.ts'
import { mayAskTwice } from '../authoring/question-guards.ts'
import { deferMachineEffects, deferredActions, hostOf, taskIdOf, withScope } from '../commits/actor-host.ts'
import { PrivateProperty } from '../primitives/collections.ts'
import { atomicStep } from '../xstate/actor-system.ts'
import { emitOf } from '../xstate/effects.ts'
import { isChart } from '../xstate/persisted-snapshot.ts'
import type { TransitionCounter } from '../xstate/transition-counter.ts'
import { ArtifactChunks } from './artifact-chunks.ts'
import {
  validateAnswer,
  promptedQuestion,
  isClientInput,
  reasonIn,
  receivedAnswer,
  type PromptedQuestion
} from './chart-question.ts'

/**
 * An author's statechart as the actor `work` of a task. Its tags drive the task's life cycle: entering a state tagged
 * `input-required` or `auth-required` interrupts the task, and leaving it resumes the task. A transition from one
 * question to another resumes and asks again. Emitted words become events of the task. The chart's output completes the
 * task, its error fails it, and a final state tagged `failed` or `rejected` ends it in that state. The state's `meta`
 * has the message: `prompt` or `reason`.
 */
export function workChart(machine: AnyStateMachine, counter?: TransitionCounter): AnyActorLogic {
  const reporters = new PrivateProperty<AnyActorRef, TaskReporter>()
  const maySeveral = mayAskTwice(machine)
  const deferredMachine = deferMachineEffects(machine, counter)
  const logic = withScope(
    deferredMachine,
    {
      actionExecutor: (scope, action) => {
        // A word that is not valid throws here, so that the transition which emits it fails as a whole.
        const emitted = emitOf(action)
        if (emitted) reporters.get(scope.self)?.hold(emitted.event)
        deferredActions.actionExecutor(scope, action)
      }
    },
    counter
  )
  const failedAtStart = new WeakSet<AnyActorRef>()
  return {
    ...logic,
    getInitialSnapshot: (scope, input) => {
      reporters.set(scope.self, new TaskReporter(scope.self, { isRestored: false, maySeveral }))
      try {
        return atomicStep(scope, kept => checkContext(settled(logic.getInitialSnapshot(kept, input))))
      } catch (error) {
        failedAtStart.add(scope.self)
        crash(scope, error)
        return NO_SNAPSHOT
      }
    },
    restoreSnapshot: (persisted, scope) => {
      reporters.set(scope.self, new TaskReporter(scope.self, { isRestored: true, maySeveral }))
      return deferredMachine.restoreSnapshot(persisted, scope)
    },
    start: (snapshot, scope) => {
      logic.start?.(snapshot, scope)
      reporters.get(scope.self)?.resume(snapshot, hostOf(scope.system).isInterrupted(taskIdOf(scope.self)))
    },
    transition: (before, event, scope) => {
      if (failedAtStart.has(scope.self)) return { ...before, status: 'stopped' }
      if (crashed.has(scope.self) && event.type !== OWN_EVENT.stop) return before
      if (isClientInput(event)) reporters.get(scope.self)?.noteAnswer('queued' in event)
      try {
        const validated = isClientInput(event)
          ? validateAnswer(before, event, reporters.get(scope.self)?.asks)
          : { event }
        // A queued message may turn out to be invalid as an answer; then the chart stays where it is.
        if ('violations' in validated) return before
        const received = receivedAnswer(validated)
        const receiver = 'question' in validated ? validated.question?.actor : undefined
        if (!receiver)
          return atomicStep(scope, kept => checkContext(settled(logic.transition(before, received, kept)), before))
        scope.defer(() => receiver.send(received))
        return before
      } catch (error) {
        reporters.get(scope.self)?.drop()
        crash(scope, error)
        return before
      }
    }
  }
}

/** Snapshot of a chart that threw before it had a state. Its task stops it at once. */
const NO_SNAPSHOT = {
  status: 'active',
  output: undefined,
  error: undefined,
  value: {},
  context: {},
  children: {}
} as const

/**
 * Sends a chart's words and questions to its task after each transition, in an order in which a working task accepts
 * all of them.
 */
class TaskReporter {
  readonly #self: AnyActorRef
  #words: WorkEvent[] = []
  /** Created by the first artifact. */
  #chunks: ArtifactChunks | undefined
  #question: PromptedQuestion | undefined
  #isAnswered = false
  #hasUsedQueued = false
  #hasWarned = false
  readonly #isRestored: boolean
  /**
   * The charts below that are watched, since they may ask too; `undefined` if the chart never has two questions at
   * once.
   */
  readonly #below: Set<AnyActorRef> | undefined

  /**
   * `isRestored`: the question that the chart has then has been reported already. `maySeveral`: it may have several at
   * once.
   */
  constructor(
    self: AnyActorRef,
    { isRestored, maySeveral }: { readonly isRestored: boolean; readonly maySeveral: boolean }
  ) {
    this.#self = self
    this.#isRestored = isRestored
    if (maySeveral) this.#below = new Set()
    self.subscribe({
      next: (snapshot: AnyMachineSnapshot) => this.#report(snapshot),
      /* c8 ignore next -- errors of a chart are caught before; any other reaches the task, which is the actor's parent */
      error() {}
    })
  }

  /** The key of the open question. */
  get asks(): string | undefined {
    return this.#question?.key
  }

  /** Interrupts or resumes the task, if the restored chart's tags differ from the task's state. */
  resume(snapshot: AnyMachineSnapshot, isInterrupted: boolean): void {
    if (!this.#isRestored) return
    const task = this.#self._parent?.getSnapshot() as { readonly context: TaskContext } | undefined
    this.#question = promptedQuestion(snapshot, task?.context.asks)
    this.#watch(snapshot)
    if (isInterrupted !== (this.#question !== undefined))
      this.#send(this.#question ? this.#questionEvent(this.#question) : { type: 'work.resumed' })
  }

  /**
   * Notes an answer before its transition. If a queued one leaves the question open, the client gets the question, or
   * the next queued message is tried.
   */
  noteAnswer(isQueued: boolean): void {
    this.#isAnswered = true
    this.#hasUsedQueued ||= isQueued
  }

  /** Holds a word until its transition is complete. */
  hold(words: unknown): void {
    const word = toWorkEvent(words)
    this.#words.push(
      word.type === 'work.produced' ? (this.#chunks ??= new ArtifactChunks(this.#isRestored)).next(word) : word
    )
  }

  /** Drops the words of a transition that failed. */
  drop(): void {
    this.#words = []
  }

  #report(snapshot: AnyMachineSnapshot): void {
    if ((snapshot as object) === NO_SNAPSHOT) return
    const was = this.#question
    const words = this.#words
    const isOwed = this.#hasUsedQueued
    const isAnswered = this.#isAnswered
    this.#words = []
    this.#isAnswered = false
    this.#hasUsedQueued = false
    try {
      const is = promptedQuestion(snapshot, was?.key)
      this.#question = is
      this.#watch(snapshot)
      // Progress after an answer, or between two questions, resumes the task first, even if the same state has a
      // question again.
      const hasProgress = words.some(({ type }) => type === 'work.progressed')
      const goesOn = (isAnswered || was?.words !== is?.words) && hasProgress
      if (was && (goesOn || was.key !== is?.key)) this.#send({ type: 'work.resumed' })
      else if (was && hasProgress) this.#warnDropped()
      for (const event of words) this.#send(event)
      if (is && (isOwed || goesOn || was?.key !== is.key || was.words !== is.words)) this.#send(this.#questionEvent(is))
    } catch (error) {
      crash({ self: this.#self, system: this.#self.system }, error)
    }
  }

  #warnDropped(): void {
    if (this.#hasWarned) return
    this.#hasWarned = true
    hostOf(this.#self.system).logger.warn('progress was dropped because the task waits for an answer', {
      taskId: taskIdOf(this.#self)
    })
  }

  /** The event of a question, with its key if there may be another one. */
  #questionEvent({ key, event }: PromptedQuestion): WorkEvent {
    return this.#below ? ({ ...event, asks: key } as WorkEvent) : event
  }

  /** Reports changes of the charts below. */
  #watch({ children }: AnyMachineSnapshot): void {
    const known = this.#below
    if (!known) return
    for (const actor of Object.values<AnyActorRef>(children)) {
      const below = actor.getSnapshot() as AnyMachineSnapshot
      if (!isChart(below)) continue
      if (!known.has(actor)) {
        known.add(actor)
        actor.subscribe({ next: () => this.#report(this.#self.getSnapshot()), error() {} })
      }
      this.#watch(below)
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
  const output = state ? endedFor(state, reasonIn(snapshot, state)) : toOutcome(snapshot.output)
  return { ...snapshot, output } as AnyMachineSnapshot
}

/** Charts with an error, which take no more events until they are stopped. */
const crashed = new WeakSet<AnyActorRef>()

/** Reports an error in the author's chart. The restart policy decides whether the work restarts or the task fails. */
function crash({ self, system }: Pick<AnyActorScope, 'self' | 'system'>, error: unknown): void {
  crashed.add(self)
  hostOf(system).crash(taskIdOf(self), error)
}
