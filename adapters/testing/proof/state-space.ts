import { momentsOf, type Moment } from '../../../machines/properties/terms.ts'
import type { ExplorationBounds } from '../bounds.ts'
import { placesFrom } from '../plan/graph.ts'
import { startsIn } from '../plan/model.ts'
import {
  configurationKeyOf,
  toStepSeen,
  type InitialState,
  type Configuration,
  type Transition
} from './initial-state.ts'

/** A configuration, and the steps from it. */
export interface Node {
  readonly configuration: Configuration
  readonly edges: readonly Edge[]
  /** The sources that can act here: actors, timers, the client. */
  readonly sources: ReadonlySet<string>
  /** Whether its steps are unknown, since a bound was met. */
  readonly isCut: boolean
}

/** A step between configurations. */
export interface Edge {
  readonly transition: Transition
  /** The configuration after it, by its number. */
  readonly to: number
  readonly moments: readonly Moment[]
  /** Sources that were stopped and started by it: actors and timers. */
  readonly restarts: readonly string[]
}

/** Every configuration of a chart from one start, numbered from 0, the start. */
export interface StateSpace {
  readonly initialState: InitialState
  readonly nodes: readonly Node[]
  readonly moments: readonly Moment[]
  readonly isWhole: boolean
  /** The bound that was met, as a clause. */
  readonly met: string | undefined
  readonly isOpen: boolean
}

/**
 * Explores a chart with @xstate/graph, shortest walks first, until a bound is met.
 *
 * This takes the adjacency map of @xstate/graph, its breadth-first search and its serialization of states. @xstate/graph lacks the following.
 * Its limit throws, and gives nothing that was found. An event has one outcome; here each outcome is an event of its own. It knows neither
 * actors nor timers and their order; here their ends are moves. It finds no cycles.
 */
export function stateSpaceOf(ground: InitialState, bounds: ExplorationBounds): StateSpace {
  const keys = new Set<string>()
  const cut = new Set<string>()
  let met: string | undefined
  const key = (spot: Configuration) => configurationKeyOf(spot, ground.memory)
  const places = placesFrom<Configuration, Transition>(ground.start, {
    take: (_, stride) => stride.to,
    legalIn: spot => {
      met ??= bounds.met(keys.size)
      if (met === undefined) return ground.transitionsFrom(spot)
      cut.add(key(spot))
      return []
    },
    keyOf: spot => {
      const found = key(spot)
      keys.add(found)
      return found
    },
    describeMove: ({ says, move }) =>
      JSON.stringify([says, move && 'actor' in move ? move.actor : '', move && 'timer' in move ? move.timer.id : ''])
  })
  const numbers = new Map(places.map((place, number) => [place, number]))
  const nodes = places.map(({ turn: spot, legal }): Node => {
    const edges = legal.map((leading): Edge => ({
      transition: leading.move,
      to: Number(numbers.get(leading.to)),
      moments: momentsOf(toStepSeen(leading, spot, ground.start)),
      restarts: restartsIn(spot, leading.turn)
    }))
    return {
      configuration: spot,
      edges,
      sources: new Set(edges.flatMap(({ transition: { source } }) => source ?? [])),
      isCut: ground.isCut(spot) || (cut.size > 0 && cut.has(key(spot)))
    }
  })
  return {
    initialState: ground,
    nodes,
    moments: momentsOf(toStepSeen(undefined, undefined, ground.start)),
    isWhole: cut.size === 0,
    met,
    isOpen: places.some(({ turn }) => turn.isOpen)
  }
}

/** The source of an actor's end. */
export function actorSource(id: string): string {
  return `the actor ${id}`
}

function restartsIn(before: Configuration, after: Configuration): string[] {
  const [had, has] = [startsIn(before), startsIn(after)]
  const actors = Object.keys(had)
    .filter(id => has[id] !== undefined && has[id] !== had[id])
    .map(actorSource)
  const timers = before.timers
    .filter(timer => after.timers.some(other => other.id === timer.id && other !== timer))
    .map(({ id }) => `the timer ${id}`)
  return [...actors, ...timers]
}
