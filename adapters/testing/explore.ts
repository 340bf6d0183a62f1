import { adjacencyMapToArray, getAdjacencyMap } from '@xstate/graph'
import type { ActorLogic, AnyStateMachine } from 'xstate'
import type { MessagePolicy } from '../../runtime/outside-event.ts'
import type { AllCases } from './cases.ts'
import { chancesIn, type Refused } from './chances.ts'
import { modelOf, type Model, type Turn } from './model.ts'
import { clauseOf, type InnerMove } from './moves.ts'

/** A move that was taken, and the chart's turn by it. */
export interface Taken {
  readonly move: InnerMove
  readonly turn: Turn
}

/** A move that leads on, and where. `isWay`: the shortest way there leads over it. */
export type Leading = Taken & { readonly isWay: boolean; readonly to: Configuration }

/** A configuration that a chart can be in: the shortest way there, and what may happen then. */
export interface Configuration {
  readonly way: readonly Taken[]
  /** The first turn of the chart. */
  readonly start: Turn
  /** The turn at the end of the way. */
  readonly turn: Turn
  /** What its task takes here. */
  readonly legal: readonly Leading[]
  readonly illegal: readonly Refused[]
}

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
 * Finds every configuration of a chart once, by @xstate/graph, those with the shortest ways first. Throws RangeError when there
 * are more than the limit: where the chart's context counts or grows, `memory` has to say what of it matters.
 */
export function explore({ machine, input, cases, policy, limit }: Territory): Configuration[] {
  const keys = new Set<string>()
  const serializeState = (turn: Turn): string => {
    const key = keyOf(turn, cases)
    if (keys.add(key).size > limit) throw tooMany(limit)
    return key
  }
  const { begin, take } = modelOf(machine)
  const start = begin(input)
  const graph = adjacencyMapToArray(getAdjacencyMap(logicOf(take), {
    fromState: start,
    events: turn => chancesIn(turn, cases, policy).legal,
    serializeState,
    serializeEvent: clauseOf,
    stopWhen: ({ status }) => status !== 'active'
  }))
  const found = new Map<string, Configuration & { readonly legal: Leading[] }>()
  const place = (turn: Turn, way: readonly Taken[]) => {
    const key = keyOf(turn, cases)
    const known = found.get(key) ?? { way, start, turn, legal: [], illegal: chancesIn(turn, cases, policy).illegal }
    found.set(key, known)
    return known
  }
  place(start, [])
  for (const { state, event: move, nextState: turn } of graph) {
    const from = place(state, [])
    const way = [...from.way, { move, turn }]
    const to = place(turn, way)
    from.legal.push({ move, turn, isWay: to.way === way, to })
  }
  return [...found.values()]
}

/** The model as what the graph needs of actor logic: its snapshots are turns, its events moves. */
function logicOf(take: Model['take']): ActorLogic<Turn, InnerMove, undefined> {
  return { transition: take } as unknown as ActorLogic<Turn, InnerMove, undefined>
}

/** What tells two configurations apart: where the chart is, what it remembers, and what is going to happen by itself. */
function keyOf({ status, chart, timers, nowMs }: Turn, { memory }: AllCases): string {
  const waiting = timers.map(({ id, dueMs }) => `${id} in ${dueMs - nowMs}`).toSorted()
  return JSON.stringify([status, chart.value, memory(chart.context), waiting])
}

function tooMany(limit: number): RangeError {
  return new RangeError(`The chart has more than ${limit} configurations. Give cases.memory, the part of its context that decides where a path may lead, such as context => Math.min(context.rounds, 3).`)
}
