import type { AnyStateMachine } from 'xstate'
import type { MessagePolicy } from '../../../runtime/agent/policies.ts'
import type { AllCases } from './cases.ts'
import { placesFrom, type Place } from './graph.ts'
import { legalMovesIn, type Refused } from './legal-moves.ts'
import { modelOf, type Turn } from './model.ts'
import { describeMove, type InnerMove } from './moves.ts'

/** A configuration that a chart can be in: the shortest way there, and what its task takes and refuses then. */
export type Configuration = Place<Turn, InnerMove> & { readonly illegal: readonly Refused[] }

/** What is explored: the chart of a work, with what it is given and what may come. */
export interface Territory {
  readonly machine: AnyStateMachine
  readonly input: unknown
  readonly cases: AllCases
  readonly policy: MessagePolicy
  /** How many configurations there may be. */
  readonly limit: number
}

/**
 * Finds every configuration of a chart once, those with the shortest ways first. Throws RangeError when there are more than the
 * limit: where the chart's context counts or grows, `memory` has to say what of it matters.
 */
export function explore({ machine, input, cases, policy, limit }: Territory): Configuration[] {
  const { begin, take } = modelOf(machine)
  const places = placesFrom(begin(input), {
    take,
    legalIn: turn => legalMovesIn(turn, cases, policy).legal,
    keyOf: turn => keyOf(turn, cases),
    describeMove,
    limit
  })
  return places.map(place => Object.assign(place, { illegal: legalMovesIn(place.turn, cases, policy).illegal }))
}

/** What tells two configurations apart: where the chart is, what it remembers, and what is going to happen by itself. */
function keyOf({ status, chart, timers, nowMs }: Turn, { memory }: AllCases): string {
  const waiting = timers.map(({ id, dueMs }) => `${id} in ${dueMs - nowMs}`).toSorted()
  return JSON.stringify([status, chart.value, memory(chart.context), waiting])
}
