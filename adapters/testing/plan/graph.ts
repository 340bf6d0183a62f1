import { adjacencyMapToArray, getAdjacencyMap } from '@xstate/graph'
import type { ActorLogic, EventObject, Snapshot } from 'xstate'

/** A move that was taken, and the turn by it. */
export interface Taken<Turn, Move> {
  readonly move: Move
  readonly turn: Turn
}

/** A move that leads on, and where. `isWay`: the shortest way there leads over it. */
export type Leading<Turn, Move> = Taken<Turn, Move> & { readonly isWay: boolean; readonly to: Place<Turn, Move> }

/** A configuration that something can be in: the shortest way there, and what it takes then. */
export interface Place<Turn, Move> {
  readonly way: readonly Taken<Turn, Move>[]
  /** The first turn of all. */
  readonly start: Turn
  /** The turn at the end of the way. */
  readonly turn: Turn
  readonly legal: readonly Leading<Turn, Move>[]
}

/** What is explored: something that makes turns by moves, as a function. */
export interface Terrain<Turn, Move> {
  readonly take: (turn: Turn, move: Move) => Turn
  readonly legalIn: (turn: Turn) => readonly Move[]
  /** What tells two configurations apart. */
  readonly keyOf: (turn: Turn) => string
  readonly describeMove: (move: Move) => string
  /** How many configurations there may be. */
  readonly limit: number
}

/** Finds every configuration once, by @xstate/graph, those with the shortest ways first. Throws RangeError when there are more than the limit. */
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

/** What the graph needs of actor logic: its snapshots are turns, its events moves. */
function logicOf<Turn extends Snapshot<unknown>, Move extends EventObject>(transition: Terrain<Turn, Move>['take']): ActorLogic<Turn, Move, undefined> {
  return { transition } as unknown as ActorLogic<Turn, Move, undefined>
}

function tooMany(limit: number): RangeError {
  return new RangeError(`The chart has more than ${limit} configurations. Give cases.memory, the part of its context that decides where a path may lead, such as context => Math.min(context.rounds, 3).`)
}
