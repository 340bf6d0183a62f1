import type { AnyStateMachine } from 'xstate'
import { FROM_START, UNKNOWN, type TransitionCount } from '../../runtime/xstate/transition-counter.ts'
import { statesOf, transitionName, transitionsOf } from '../../runtime/xstate/transition-names.ts'

/** The transitions that tasks took in a chart. */
export interface Heat {
  /** Each transition of the chart, in its order; `count` is 0 if no task took it. `tested` says whether a test takes it, if that is known. */
  readonly transitions: readonly { readonly name: string; readonly count: number; readonly tested?: boolean }[]
  /** The states that were left, in the order of the chart: how often that was timed, and the mean time in the state before, in milliseconds. */
  readonly states: readonly { readonly state: string; readonly waits: number; readonly meanMs: number }[]
  /** Pairs of transitions that followed each other, the most frequent first; `previous` is `the start` before the first. Those after a restart are left out. */
  readonly pairs: readonly { readonly previous: string; readonly taken: string; readonly count: number }[]
}

/** The heat of a chart, from the counts of its version. */
export function heatOf({ root }: AnyStateMachine, counts: readonly TransitionCount[]): Heat {
  const total = (of: readonly TransitionCount[], member: 'count' | 'timed' | 'ms') =>
    of.reduce((sum, one) => sum + one[member], 0)
  const named = (name: string) => counts.filter(({ taken }) => taken === name)
  const states = statesOf(root).map(node => {
    const left = transitionsOf(node).flatMap(transition => named(transitionName(transition)))
    const waits = total(left, 'timed')
    return { state: node.id, waits, meanMs: Math.round(total(left, 'ms') / waits) }
  })
  return {
    transitions: statesOf(root)
      .flatMap(transitionsOf)
      .map(transitionName)
      .map(name => ({ name, count: total(named(name), 'count') })),
    states: states.filter(({ waits }) => waits > 0),
    pairs: counts
      .filter(({ previous }) => previous !== UNKNOWN)
      .map(({ previous, taken, count }) => ({
        previous: previous === FROM_START ? 'the start' : previous,
        taken,
        count
      }))
      .toSorted((a, b) => b.count - a.count)
  }
}
