import { adjacencyMapToArray, getAdjacencyMap } from '@xstate/graph'
import type { ActorLogic, EventObject, Snapshot } from 'xstate'
import { checkPackages } from '../../peers/installed-packages.ts'
import { BoundError, type ExplorationBounds } from '../bounds.ts'

checkPackages(['@xstate/graph'])

/** A move, and the turn after it. */
export interface MoveResult<Turn, Move> {
  readonly move: Move
  readonly turn: Turn
}

/** A move that leads to another place. `isWay`: it belongs to the shortest path there. */
type Leading<Turn, Move> = MoveResult<Turn, Move> & {
  readonly isWay: boolean
  readonly to: ReachedConfiguration<Turn, Move>
}

/** A reachable configuration: the shortest path to it, and its legal moves. */
export interface ReachedConfiguration<Turn, Move> {
  readonly way: readonly MoveResult<Turn, Move>[]
  /** The initial turn. */
  readonly start: Turn
  /** The turn at the end of the path. */
  readonly turn: Turn
  readonly legal: readonly Leading<Turn, Move>[]
}

/** A pure transition function to explore. */
interface Terrain<Turn, Move> {
  readonly take: (turn: Turn, move: Move) => Turn
  readonly legalIn: (turn: Turn) => readonly Move[]
  /** Identifies a configuration. */
  readonly keyOf: (turn: Turn) => string
  readonly describeMove: (move: Move) => string
  /** Default: none. */
  readonly bounds?: ExplorationBounds
}

/** Finds every configuration once with @xstate/graph, shortest paths first. Throws BoundError if a bound is met. */
export function placesFrom<Turn extends Snapshot<unknown>, Move extends EventObject>(
  start: Turn,
  { take, legalIn, keyOf, describeMove, bounds }: Terrain<Turn, Move>
): ReachedConfiguration<Turn, Move>[] {
  const keys = new Set<string>()
  const serializeState = (turn: Turn): string => {
    const key = keyOf(turn)
    const met = keys.has(key) ? undefined : bounds?.met(keys.add(key).size)
    if (met !== undefined)
      throw new BoundError(
        `not every configuration of the chart was found: ${met}. Raise that bound, or give cases.memory, the part of its context that decides where a path may lead, such as context => Math.min(context.rounds, 3).`
      )
    return key
  }
  const graph = adjacencyMapToArray(
    getAdjacencyMap(logicOf(take), {
      fromState: start,
      events: legalIn,
      serializeState,
      serializeEvent: describeMove,
      stopWhen: ({ status }) => status !== 'active'
    })
  )
  const found = new Map<string, ReachedConfiguration<Turn, Move> & { readonly legal: Leading<Turn, Move>[] }>()
  const place = (turn: Turn, way: readonly MoveResult<Turn, Move>[]) => {
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
function logicOf<Turn extends Snapshot<unknown>, Move extends EventObject>(
  transition: Terrain<Turn, Move>['take']
): ActorLogic<Turn, Move, undefined> {
  return { transition } as unknown as ActorLogic<Turn, Move, undefined>
}

/** The maximum number of simple paths per opening message. */
const MOST_SIMPLE = 10_000

/** The shortest paths to all configurations, except prefixes of others. */
export function shortestWays<Turn, Move>(
  places: readonly ReachedConfiguration<Turn, Move>[]
): (readonly MoveResult<Turn, Move>[])[] {
  return places.filter(({ legal }) => !legal.some(({ isWay }) => isWay)).map(({ way }) => way)
}

/**
 * All paths without a repeated configuration, except prefixes of others. Throws BoundError above 10,000: a dense chart
 * has exponentially many. The search stops at the limit, which @xstate/graph cannot do.
 */
export function simpleWays<Turn, Move>([start]: readonly ReachedConfiguration<Turn, Move>[]): (readonly MoveResult<
  Turn,
  Move
>[])[] {
  const ways: (readonly MoveResult<Turn, Move>[])[] = []
  const been = new Set<ReachedConfiguration<Turn, Move>>()
  const go = (here: ReachedConfiguration<Turn, Move>, way: readonly MoveResult<Turn, Move>[]): void => {
    been.add(here)
    const next = here.legal.filter(({ to }) => !been.has(to))
    for (const { move, turn, to } of next) go(to, [...way, { move, turn }])
    if (next.length === 0 && ways.push(way) > MOST_SIMPLE)
      throw new BoundError(
        `the chart has more than ${MOST_SIMPLE} simple paths. Walk the cover, which takes every move in every configuration.`
      )
    been.delete(here)
  }
  if (start) go(start, [])
  return ways
}
