import type { Place, Taken } from './graph.ts'

/**
 * Which paths are walked. `cover`: every move in every configuration, a cancel there, and all that has to be refused there.
 * `shortest`: the shortest way to each configuration. `simple`: every way that is nowhere twice.
 */
export const PATH_KINDS = ['cover', 'shortest', 'simple'] as const

/** One of `PATH_KINDS`. */
export type PathKind = (typeof PATH_KINDS)[number]

/** How many simple paths there may be for one opening message. */
const MOST_SIMPLE = 10_000

/** The shortest ways to all configurations, but for those that are the beginning of another. */
export function shortestWays<Turn, Move>(places: readonly Place<Turn, Move>[]): (readonly Taken<Turn, Move>[])[] {
  return places.filter(({ legal }) => !legal.some(({ isWay }) => isWay)).map(({ way }) => way)
}

/**
 * All ways that are in no configuration twice, but for those that are the beginning of another. Throws RangeError when there
 * are more than 10,000: in a chart where everything leads everywhere they are without number. (They are looked for one by
 * one, so that there is an end to it; @xstate/graph looks for all.)
 */
export function simpleWays<Turn, Move>([start]: readonly Place<Turn, Move>[]): (readonly Taken<Turn, Move>[])[] {
  const ways: (readonly Taken<Turn, Move>[])[] = []
  const been = new Set<Place<Turn, Move>>()
  const go = (here: Place<Turn, Move>, way: readonly Taken<Turn, Move>[]): void => {
    been.add(here)
    const next = here.legal.filter(({ to }) => !been.has(to))
    for (const { move, turn, to } of next) go(to, [...way, { move, turn }])
    if (next.length === 0 && ways.push(way) > MOST_SIMPLE) throw new RangeError(`The chart has more than ${MOST_SIMPLE} simple paths. Walk the cover, which takes every move in every configuration.`)
    been.delete(here)
  }
  if (start) go(start, [])
  return ways
}
