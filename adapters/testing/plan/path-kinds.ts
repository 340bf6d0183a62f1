import { BoundError } from '../bounds.ts'
import type { Place, Taken } from './graph.ts'

/**
 * The paths to walk. `cover`: every move in every configuration, a cancel there, and every refusal there. `shortest`: the shortest path
 * to each configuration. `simple`: every path without a repeated configuration.
 */
export const PATH_KINDS = ['cover', 'shortest', 'simple'] as const

/** One of `PATH_KINDS`. */
export type PathKind = (typeof PATH_KINDS)[number]

/** The maximum number of simple paths per opening message. */
const MOST_SIMPLE = 10_000

/** The shortest paths to all configurations, except prefixes of others. */
export function shortestWays<Turn, Move>(places: readonly Place<Turn, Move>[]): (readonly Taken<Turn, Move>[])[] {
  return places.filter(({ legal }) => !legal.some(({ isWay }) => isWay)).map(({ way }) => way)
}

/**
 * All paths without a repeated configuration, except prefixes of others. Throws BoundError above 10,000: a dense chart has exponentially
 * many. The search stops at the limit, which @xstate/graph cannot do.
 */
export function simpleWays<Turn, Move>([start]: readonly Place<Turn, Move>[]): (readonly Taken<Turn, Move>[])[] {
  const ways: (readonly Taken<Turn, Move>[])[] = []
  const been = new Set<Place<Turn, Move>>()
  const go = (here: Place<Turn, Move>, way: readonly Taken<Turn, Move>[]): void => {
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
