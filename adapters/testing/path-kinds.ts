import type { Configuration, Taken } from './explore.ts'

/**
 * Which paths are walked. `cover`: every move in every configuration, a cancel there, and all that has to be refused there.
 * `shortest`: the shortest way to each configuration. `simple`: every way that is nowhere twice.
 */
export const PATH_KINDS = ['cover', 'shortest', 'simple'] as const

export type PathKind = (typeof PATH_KINDS)[number]

/** How many simple paths there may be for one opening message. */
const MOST_SIMPLE = 10_000

/** The shortest ways to all configurations, but for those that are the beginning of another. */
export function shortestWays(configurations: readonly Configuration[]): (readonly Taken[])[] {
  return configurations.filter(({ legal }) => !legal.some(({ isWay }) => isWay)).map(({ way }) => way)
}

/**
 * All ways that are in no configuration twice, but for those that are the beginning of another. Throws RangeError when there
 * are more than 10,000: in a chart where everything leads everywhere they are without number. (They are looked for one by
 * one, so that there is an end to it; @xstate/graph looks for all.)
 */
export function simpleWays([start]: readonly Configuration[]): (readonly Taken[])[] {
  const ways: (readonly Taken[])[] = []
  const been = new Set<Configuration>()
  const go = (here: Configuration, way: readonly Taken[]): void => {
    been.add(here)
    const next = here.legal.filter(({ to }) => !been.has(to))
    for (const { move, turn, to } of next) go(to, [...way, { move, turn }])
    if (next.length === 0 && ways.push(way) > MOST_SIMPLE) throw new RangeError(`The chart has more than ${MOST_SIMPLE} simple paths. Walk the cover, which takes every move in every configuration.`)
    been.delete(here)
  }
  if (start) go(start, [])
  return ways
}
