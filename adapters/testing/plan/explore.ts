import type { AnyStateMachine } from 'xstate'
import type { MessagePolicy } from '../../../runtime/agent/policies.ts'
import type { Bounds } from '../bounds.ts'
import type { AllCases } from './cases.ts'
import type { DrawWatch } from './draws.ts'
import { placesFrom, type Place } from './graph.ts'
import { legalMovesIn, type Refused } from './legal-moves.ts'
import { clockedModelOf, configurationKey, type Turn } from './model.ts'
import { describeMove, type InnerMove } from './moves.ts'

/** A reachable configuration of a chart: the shortest path to it, and the moves that its task accepts and refuses. */
export type Configuration = Place<Turn, InnerMove> & { readonly illegal: readonly Refused[] }

/** A chart to explore, with its input and cases. */
export interface Territory {
  readonly machine: AnyStateMachine
  readonly input: unknown
  readonly cases: AllCases
  readonly policy: MessagePolicy
  readonly bounds: Bounds
  /** Sees whether the chart draws random numbers. */
  readonly watch: DrawWatch
}

/**
 * Finds every configuration of a chart once, shortest paths first. Throws BoundError if a bound is met: if the context counts or grows,
 * `memory` has to reduce it.
 */
export function explore({ machine, input, cases, policy, bounds, watch }: Territory): Configuration[] {
  const { begin, take } = watch.over(clockedModelOf(machine))
  const places = placesFrom(begin(input), {
    take,
    legalIn: turn => legalMovesIn(turn, cases, policy).legal,
    keyOf: turn => keyOf(turn, cases),
    // Two actors of one logic end with the same words.
    describeMove: move => JSON.stringify([describeMove(move), 'actor' in move ? move.actor : '']),
    bounds
  })
  return places.map(place => Object.assign(place, { illegal: legalMovesIn(place.turn, cases, policy).illegal }))
}

function keyOf(turn: Turn, { memory }: AllCases): string {
  const waiting = turn.timers.map(({ id, dueMs }) => `${id} in ${dueMs - turn.nowMs}`).toSorted()
  return configurationKey(turn, memory(turn.chart.context), waiting)
}
