import type { Step } from '../../feed.ts'

/** The way that an actor went through its chart, as far as it was seen. */
export interface ChartPath {
  /** Where it is, or was last: ids of state nodes. */
  readonly active: readonly string[]
  /** Where it has been. */
  readonly visited: ReadonlySet<string>
  /** Names of the transitions that it took. */
  readonly taken: ReadonlySet<string>
  /** Those of its last step. */
  readonly last: readonly string[]
  readonly stops: readonly Stop[]
}

/** A stop on the way: the event that led there, and the innermost states then. */
export interface Stop {
  readonly event: string
  readonly states: readonly string[]
}

/** The steps that an actor took in its chart: by its session, or those of a task's whose states are all in the chart. */
export function stepsOf(steps: readonly Step[], who: { readonly sessionId: string } | { readonly taskId: string }, chartStates: ReadonlySet<string>): Step[] {
  const isIts = 'sessionId' in who ? ({ to }: Step) => to === who.sessionId : ({ taskId }: Step) => taskId === who.taskId
  return steps.filter(step => isIts(step) && step.states !== undefined && step.states.length > 0 && step.states.every(id => chartStates.has(id)))
}

/** The way that these steps of an actor make. `now`: where it is by what is known besides. */
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

/** Steps that begin with a transition began where that leads from, though nobody saw the actor rest there. */
function stopsOf(steps: readonly Step[]): Stop[] {
  const [first] = steps[0]?.transitions ?? []
  const stops = steps.map(({ event, states = [] }) => ({ event: event.type, states: innermost(states) }))
  return first === undefined ? stops : [{ event: 'xstate.init', states: [sourceOf(first)] }, ...stops]
}

/** Where a transition leads from, by its name. */
function sourceOf(name: string): string {
  return name.slice(0, Math.max(0, name.indexOf(' on ')))
}

/** Of states, those that hold none of the others. */
export function innermost(states: readonly string[]): string[] {
  return states.filter(id => !states.some(other => other.startsWith(`${id}.`)))
}

/** The last part of a state's id. */
export function stateName(id: string): string {
  return id.slice(id.lastIndexOf('.') + 1)
}
