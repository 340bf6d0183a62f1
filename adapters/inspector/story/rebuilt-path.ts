import type { TaskState } from '../../../machines/protocol/states.ts'
import type { TaskEvent } from '../../../runtime/store/store.ts'
import type { Step } from '../feed.ts'
import { stateName } from './chart-path.ts'

/** The states and transitions of a chart, by id and name. */
export interface ChartNames {
  readonly states: ReadonlySet<string>
  readonly transitions: readonly string[]
}

/**
 * Rebuilds the steps of a task's own chart from the stored events, for tasks that no inspector watched. An event whose transition is not
 * certain gives a step without transitions.
 */
export function rebuiltSteps(events: readonly TaskEvent[], { states, transitions }: ChartNames): Step[] {
  let active: readonly string[] = []
  return events.map(({ taskId, generation, update }): Step => {
    const before = active
    const status = 'statusUpdate' in update ? update.statusUpdate.status : undefined
    if (status) active = statesOf(status.state, states)
    const taken = status
      ? transitionBetween(before, active, transitions)
      : transitions.filter(name => before.some(id => name.startsWith(`${id} on work.produced `)))
    return {
      n: generation,
      atMs: Date.parse(status?.timestamp ?? '') || 0,
      kind: 'microstep',
      to: taskId,
      event: { type: 'stored event' },
      states: active,
      transitions: taken,
      taskId,
      generation
    }
  })
}

/** The active states of the task chart for a status, outermost first. */
function statesOf(state: TaskState, states: ReadonlySet<string>): string[] {
  const key = state
    .replace('TASK_STATE_', '')
    .toLowerCase()
    .replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())
  const leaf = [...states].find(id => stateName(id) === key)
  return [...states].filter(id => leaf === id || leaf?.startsWith(`${id}.`))
}

/** The one transition that leads from some states to others; none if several could. */
function transitionBetween(from: readonly string[], to: readonly string[], transitions: readonly string[]): string[] {
  const entered = new Set(to.filter(id => id === to.at(-1) || !from.includes(id)).map(stateName))
  const possible = transitions.filter(
    name => from.some(id => name.startsWith(`${id} on `)) && entered.has(name.slice(name.lastIndexOf(' to ') + 4))
  )
  return possible.length === 1 ? possible : []
}
