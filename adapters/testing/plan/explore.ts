import type { AnyMachineSnapshot, AnyStateMachine, EventObject } from 'xstate'
import type { MessagePolicy } from '../../../runtime/agent/policies.ts'
import type { Bounds } from '../bounds.ts'
import { modelWith } from './acted-model.ts'
import type { AllCases } from './cases.ts'
import type { DrawWatch } from './draws.ts'
import { placesFrom, type Place } from './graph.ts'
import { legalMovesIn, type Refused } from './legal-moves.ts'
import { clockedModelOf, configurationKey, type Turn } from './model.ts'
import { describeMove, type InnerMove } from './moves.ts'
import { toldAfter } from './told.ts'
import { Unmodelled } from './unmodelled.ts'

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
  /** Told of each move that the model cannot follow. */
  readonly lose: (turn: Turn, move: InnerMove, error: Unmodelled) => void
}

/**
 * Finds every configuration of a chart once, shortest paths first. Throws BoundError if a bound is met: if the context counts or grows,
 * `memory` has to reduce it. Throws Unmodelled if the model cannot follow its start.
 */
export function explore({ machine, input, cases, policy, bounds, watch, lose }: Territory): Configuration[] {
  const { begin, take } = watch.over(clockedModelOf(modelWith(machine, cases)))
  const taken = new WeakMap<InnerMove, Turn>()
  const isFollowed = (turn: Turn, move: InnerMove) => {
    try {
      const after = take(turn, move)
      toldAfter(after, turn, move)
      taken.set(move, after)
      return true
    } catch (error) {
      if (!(error instanceof Unmodelled)) throw error
      lose(turn, move, error)
      return false
    }
  }
  const start = begin(input)
  toldAfter(start)
  const places = placesFrom<Turn, InnerMove>(start, {
    take: (_, move) => taken.get(move) as Turn,
    legalIn: turn => legalMovesIn(turn, cases, policy, can).legal.filter(move => isFollowed(turn, move)),
    keyOf: turn => keyOf(turn, cases),
    // Two actors of one logic end with the same words.
    describeMove: move => JSON.stringify([describeMove(move), 'actor' in move ? move.actor : '']),
    bounds
  })
  return places.map(place => Object.assign(place, { illegal: legalMovesIn(place.turn, cases, policy, can).illegal }))
}

/** Whether the chart accepts an event. If a guard throws, it throws at the event. */
function can(chart: AnyMachineSnapshot, event: EventObject): boolean {
  try {
    return chart.can(event)
  } catch {
    return true
  }
}

function keyOf(turn: Turn, { memory }: AllCases): string {
  const waiting = turn.timers.map(({ id, dueMs }) => `${id} in ${dueMs - turn.nowMs}`).toSorted()
  return configurationKey(turn, memory(turn.chart.context), waiting)
}
