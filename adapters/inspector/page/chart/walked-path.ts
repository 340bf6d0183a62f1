import { OWN_EVENT } from '../../../../machines/xstate-names.ts'
import type { ActorStep } from '../../feed.ts'
import { innermost, sourceOf } from '../../story/chart-path.ts'

/** The path of an actor through its chart, as far as it was recorded. */
export interface ChartPath {
  /** The current or last states: ids of state nodes. */
  readonly active: readonly string[]
  /** All states of the path. */
  readonly visited: ReadonlySet<string>
  /** The names of all transitions of the path. */
  readonly transitions: ReadonlySet<string>
  /** The transitions of the last step. */
  readonly last: readonly string[]
  readonly stops: readonly Stop[]
}

/** A stop on the path: the event, and the innermost states after it. */
interface Stop {
  readonly event: string
  readonly states: readonly string[]
}

/** The path of an actor's steps. `now`: its current states, if known. */
export function chartPathOf(steps: readonly ActorStep[], now?: readonly string[]): ChartPath {
  const visited = new Set<string>(now)
  const used = new Set<string>()
  for (const { states = [], transitions = [] } of steps) {
    for (const id of states) visited.add(id)
    for (const name of transitions) {
      used.add(name)
      visited.add(sourceOf(name))
    }
  }
  const last = steps.at(-1)
  return {
    active: now ?? last?.states ?? [],
    visited,
    transitions: used,
    last: last?.transitions ?? [],
    stops: stopsOf(steps)
  }
}

/** If the first recorded step has a transition, its source state is the first stop. */
function stopsOf(steps: readonly ActorStep[]): Stop[] {
  const [first] = steps[0]?.transitions ?? []
  const stops = steps.map(({ event, states = [] }) => ({ event: event.type, states: innermost(states) }))
  return first === undefined ? stops : [{ event: OWN_EVENT.start, states: [sourceOf(first)] }, ...stops]
}
