import type { Step } from '../feed.ts'

/** The path of an actor through its chart, as far as it was recorded. */
export interface ChartPath {
  /** The current or last states: ids of state nodes. */
  readonly active: readonly string[]
  /** All states of the path. */
  readonly visited: ReadonlySet<string>
  /** The names of all transitions of the path. */
  readonly taken: ReadonlySet<string>
  /** The transitions of the last step. */
  readonly last: readonly string[]
  readonly stops: readonly Stop[]
}

/** A stop on the path: the event, and the innermost states after it. */
export interface Stop {
  readonly event: string
  readonly states: readonly string[]
}

/** The path of an actor's steps. `now`: its current states, if known. */
export function pathOf(steps: readonly Step[], now?: readonly string[]): ChartPath {
  const visited = new Set<string>(now)
  const taken = new Set<string>()
  for (const { states = [], transitions = [] } of steps) {
    for (const id of states) visited.add(id)
    for (const name of transitions) {
      taken.add(name)
      visited.add(sourceOf(name))
    }
  }
  const last = steps.at(-1)
  return { active: now ?? last?.states ?? [], visited, taken, last: last?.transitions ?? [], stops: stopsOf(steps) }
}

/** If the first recorded step has a transition, its source state is the first stop. */
function stopsOf(steps: readonly Step[]): Stop[] {
  const [first] = steps[0]?.transitions ?? []
  const stops = steps.map(({ event, states = [] }) => ({ event: event.type, states: innermost(states) }))
  return first === undefined ? stops : [{ event: 'xstate.init', states: [sourceOf(first)] }, ...stops]
}

/** The source state in a transition's name. */
function sourceOf(name: string): string {
  return name.slice(0, Math.max(0, name.indexOf(' on ')))
}

/** The states that contain none of the others. */
export function innermost(states: readonly string[]): string[] {
  return states.filter(id => !states.some(other => other.startsWith(`${id}.`)))
}

/** The last part of a state's id. */
export function stateName(id: string): string {
  return id.slice(id.lastIndexOf('.') + 1)
}
