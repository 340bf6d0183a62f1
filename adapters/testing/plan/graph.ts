import { adjacencyMapToArray, getAdjacencyMap } from '@xstate/graph'
import type { ActorLogic, EventObject, Snapshot } from 'xstate'
import { checkPackages } from '../../peers/installed-packages.ts'

checkPackages(['@xstate/graph'])

/** A move, and the turn after it. */
export interface Taken<Turn, Move> {
  readonly move: Move
  readonly turn: Turn
}

/** A move that leads to another place. `isWay`: it belongs to the shortest path there. */
export type Leading<Turn, Move> = Taken<Turn, Move> & { readonly isWay: boolean; readonly to: Place<Turn, Move> }

/** A reachable configuration: the shortest path to it, and its legal moves. */
export interface Place<Turn, Move> {
  readonly way: readonly Taken<Turn, Move>[]
  /** The initial turn. */
  readonly start: Turn
  /** The turn at the end of the path. */
  readonly turn: Turn
  readonly legal: readonly Leading<Turn, Move>[]
}

/** A pure transition function to explore. */
export interface Terrain<Turn, Move> {
  readonly take: (turn: Turn, move: Move) => Turn
  readonly legalIn: (turn: Turn) => readonly Move[]
  /** Identifies a configuration. */
  readonly keyOf: (turn: Turn) => string
  readonly describeMove: (move: Move) => string
  /** The maximum number of configurations. */
  readonly limit: number
}

/** Finds every configuration once with @xstate/graph, shortest paths first. Throws RangeError above the limit. */
export function placesFrom<Turn extends Snapshot<unknown>, Move extends EventObject>(start: Turn, { take, legalIn, keyOf, describeMove, limit }: Terrain<Turn, Move>): Place<Turn, Move>[] {
  const keys = new Set<string>()
  const serializeState = (turn: Turn): string => {
    const key = keyOf(turn)
    if (keys.add(key).size > limit) throw tooMany(limit)
    return key
  }
  const graph = adjacencyMapToArray(getAdjacencyMap(logicOf(take), {
    fromState: start,
    events: legalIn,
    serializeState,
    serializeEvent: describeMove,
    stopWhen: ({ status }) => status !== 'active'
  }))
  const found = new Map<string, Place<Turn, Move> & { readonly legal: Leading<Turn, Move>[] }>()
  const place = (turn: Turn, way: readonly Taken<Turn, Move>[]) => {
    const key = keyOf(turn)
    const known = found.get(key) ?? { way, start, turn, legal: [] }
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

/** The part of actor logic that the graph needs: snapshots are turns, events are moves. */
function logicOf<Turn extends Snapshot<unknown>, Move extends EventObject>(transition: Terrain<Turn, Move>['take']): ActorLogic<Turn, Move, undefined> {
  return { transition } as unknown as ActorLogic<Turn, Move, undefined>
}

function tooMany(limit: number): RangeError {
  return new RangeError(`The chart has more than ${limit} configurations. Give cases.memory, the part of its context that decides where a path may lead, such as context => Math.min(context.rounds, 3).`)
}
