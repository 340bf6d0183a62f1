import type { AnyMachineSnapshot, AnyStateMachine, AnyStateNode, StateValue } from 'xstate'
import type { ExecutedAction } from './effects.ts'
import { initialTransition, StateMachine, transition } from './library.ts'
import { activeStates } from './persisted-snapshot.ts'
import { isEndless } from './pure-step.ts'
import type { WrittenChart, WrittenState } from './written-chart.ts'

/** A guard that a step evaluated, by the name of its transition, and the outcome that it was given. */
export interface GuardOutcome {
  readonly transition: string
  readonly holds: boolean
}

/** A configuration of a chart: its active states, and the states to which its history leads. */
export interface ChartConfiguration {
  readonly value: StateValue
  /** Ids of states, by the ids of history states. */
  readonly history: Readonly<Record<string, readonly string[]>>
  /** The ids of the active states, outermost first. */
  readonly active: readonly string[]
  readonly isDone: boolean
  /** The error of an actor that ended the chart: the type of its event, which no transition took. */
  readonly failedBy?: string
}

/** A step of a chart without its code. */
export interface SkeletonStep {
  readonly to: ChartConfiguration
  /** The ids of the states that it entered. */
  readonly entered: ReadonlySet<string>
  readonly outcomes: readonly GuardOutcome[]
}

/** An event that no transition names. A chart that gets it takes those on any event, and its eventless ones. */
export const UNNAMED = 'taskchart.unnamed'

/** The maximum numbers of guards in one step, and of combinations of their outcomes. */
const MOST_GUARDS = 100
const MOST_RUNS = 500
/** The maximum number of microsteps in one step. */
const MOST_MICROSTEPS = 300

const ENTERED = 'entered'

/**
 * A chart without its code: its states and transitions, with the steps of XState. It has no context, actions or actors,
 * and each guard has both outcomes whenever it is evaluated. So it reaches every configuration that the chart reaches,
 * and may reach more. Timers and the ends of actors are events like others.
 */
export class SkeletonChart {
  readonly #machine: AnyStateMachine
  /** Whether a step that goes on for longer than it is followed comes by a state twice, so that nothing is missed. */
  readonly #hasShortWays: boolean
  #script: readonly boolean[] = []
  #outcomes: GuardOutcome[] = []

  constructor({ root, states, transitions }: Pick<WrittenChart, 'root' | 'states' | 'transitions'>) {
    const nothing = { guards: {}, actions: {}, actors: {}, delays: {} }
    const config = { ...this.#configOf(root), options: { maxIterations: MOST_MICROSTEPS } }
    this.#machine = new StateMachine(config as never, nothing as never)
    const eventless = transitions.filter(({ event }) => event === '').length
    this.#hasShortWays = eventless <= MOST_GUARDS / 2 && states.every(({ type }) => type !== 'parallel')
  }

  /** The configurations in which the chart may begin; `undefined` if there are too many guards to follow. */
  begin(): readonly SkeletonStep[] | undefined {
    let isBegun = false
    const logic: Pick<AnyStateMachine, 'getInitialSnapshot'> = {
      getInitialSnapshot: (scope, given) => {
        if (isBegun) return this.#machine.getInitialSnapshot(scope, given)
        // XState makes an actor for `self` first.
        isBegun = true
        return undefined as never
      }
    }
    return this.#bothWays(() => {
      isBegun = false
      return initialTransition(logic as AnyStateMachine)
    })
  }

  /** The configurations after an event; `undefined` if there are too many guards to follow. */
  take(from: ChartConfiguration, type: string): readonly SkeletonStep[] | undefined {
    const before = this.#snapshotAt(from)
    const logic: Pick<AnyStateMachine, 'transition' | 'getInitialSnapshot'> = {
      getInitialSnapshot: () => before,
      transition: (snapshot, event, scope) => this.#machine.transition(snapshot, event, scope)
    }
    return this.#bothWays(() => transition(logic as AnyStateMachine, before, { type }), type)
  }

  /** A configuration of another chart as this one restores it. All of its states have to exist here. */
  restore(from: ChartConfiguration): ChartConfiguration {
    return configurationOf(this.#snapshotAt(from))
  }

  #snapshotAt({ value, history }: ChartConfiguration): AnyMachineSnapshot {
    const historyValue = mapped(history, ids => ids.map(id => this.#machine.getStateNodeById(id)))
    return this.#machine.resolveState({ value, context: {}, historyValue })
  }

  /** One step for each combination of outcomes of the guards that it evaluates. */
  #bothWays(
    take: () => readonly [AnyMachineSnapshot, readonly ExecutedAction[]],
    event = ''
  ): SkeletonStep[] | undefined {
    const steps: SkeletonStep[] = []
    let script: readonly boolean[] | undefined = []
    for (let runs = 0; script; runs += 1) {
      if (runs === MOST_RUNS) return undefined
      this.#script = script
      this.#outcomes = []
      try {
        steps.push(this.#stepOf(take(), event))
      } catch (error) {
        /* c8 ignore next -- a chart without code throws nothing else */
        if (this.#outcomes.length <= MOST_GUARDS && !isEndless(error)) throw error
        if (!this.#hasShortWays) return undefined
      }
      const outcomes: readonly boolean[] = this.#outcomes.map(({ holds }) => holds)
      const last: number = outcomes.lastIndexOf(true)
      script = last < 0 ? undefined : [...outcomes.slice(0, last), false]
    }
    return steps
  }

  #stepOf([snapshot, actions]: readonly [AnyMachineSnapshot, readonly ExecutedAction[]], event: string): SkeletonStep {
    // The error of an actor has no value here, and ends a chart in which no transition takes it.
    const isFailed = snapshot.status === 'error' && snapshot.error === undefined
    // The start of a chart does not throw.
    if (snapshot.status === 'error' && !isFailed) throw snapshot.error
    // All of its actions are those that are executed when a state is entered.
    const entered = actions.map(({ params }) => (params as { id: string }).id)
    const to = { ...configurationOf(snapshot), ...(isFailed && { failedBy: event }) }
    return { to, entered: new Set(entered), outcomes: this.#outcomes }
  }

  #decide(name: string): boolean {
    const holds = this.#script[this.#outcomes.length] ?? true
    if (this.#outcomes.push({ transition: name, holds }) > MOST_GUARDS) throw new RangeError('too many guards')
    return holds
  }

  #configOf(state: WrittenState): object {
    const { id, type, history, initial, parent, states, transitions } = state
    const on: Record<string, object[]> = {}
    const always: object[] = []
    for (const { name, event, targets, guard, reenter } of transitions) {
      const list = event === '' ? always : (on[event] ??= [])
      list.push({
        ...(targets.length > 0 && { target: targets.map(({ id }) => `#${id}`) }),
        ...(guard && { guard: () => this.#decide(name) }),
        reenter
      })
    }
    const [first] = initial
    return {
      id,
      type,
      ...(history && { history, ...(state.historyTarget !== undefined && { target: `#${first?.id}` }) }),
      ...(type === 'compound' && { initial: first?.key }),
      ...(parent && type !== 'history' && { entry: { type: ENTERED, params: { id } } }),
      ...(transitions.length > 0 && { on, always }),
      ...(states.length > 0 && { states: Object.fromEntries(states.map(child => [child.key, this.#configOf(child)])) })
    }
  }
}

function configurationOf(snapshot: AnyMachineSnapshot): ChartConfiguration {
  const historyValue = snapshot.historyValue as Readonly<Record<string, readonly AnyStateNode[]>>
  return {
    value: snapshot.value as StateValue,
    history: mapped(historyValue, nodes => nodes.map(({ id }) => id).toSorted()),
    active: activeStates(snapshot).map(({ id }) => id),
    isDone: snapshot.status !== 'active'
  }
}

function mapped<From, To>(all: Readonly<Record<string, From>>, change: (one: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(all).map(([name, one]) => [name, change(one)]))
}
