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
 * This takes the adjacency map of @xstate/graph, its breadth-first search and its serialization of states.
 * @xstate/graph lacks the following. Its limit throws, and gives nothing that was found. An event has one outcome; here
 * each outcome is an event of its own. It knows neither actors nor timers and their order; here their ends are moves.
 * It finds no cycles.
 */
export function stateSpaceOf(initialState: InitialState, bounds: ExplorationBounds): StateSpace {
  const keys = new Set<string>()
  const cut = new Set<string>()
  let met: string | undefined
  const key = (configuration: Configuration) => configurationKeyOf(configuration, initialState.memory)
  const places = placesFrom<Configuration, Transition>(initialState.start, {
    take: (_, transition) => transition.to,
    legalIn: configuration => {
      met ??= bounds.met(keys.size)
      if (met === undefined) return initialState.transitionsFrom(configuration)
      cut.add(key(configuration))
      return []
    },
    keyOf: configuration => {
      const found = key(configuration)
      keys.add(found)
      return found
    },
    describeMove: ({ says, move }) =>
      JSON.stringify([says, move && 'actor' in move ? move.actor : '', move && 'timer' in move ? move.timer.id : ''])
  })
  const numbers = new Map(places.map((place, number) => [place, number]))
  const nodes = places.map(({ turn: configuration, legal }): Node => {
    const edges = legal.map((leading): Edge => ({
      transition: leading.move,
      to: Number(numbers.get(leading.to)),
      moments: momentsOf(toStepSeen(leading, configuration, initialState.start)),
      restarts: restartsIn(configuration, leading.turn)
    }))
    return {
      configuration,
      edges,
      sources: new Set(edges.flatMap(({ transition: { source } }) => source ?? [])),
      isCut: initialState.isCut(configuration) || (cut.size > 0 && cut.has(key(configuration)))
    }
  })
  return {
    initialState,
    nodes,
    moments: momentsOf(toStepSeen(undefined, undefined, initialState.start)),
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
