import type { Artifact, Part } from '../../../machines/protocol/objects.ts'
import { stateText, type TaskState } from '../../../machines/protocol/states.ts'
import type { TaskEvent } from '../../../runtime/store/store.ts'
import type { ActorStep } from '../feed.ts'

/** The source state in a transition's name. */
export function sourceOf(name: string): string {
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

/** The states and transitions of a chart, by id and name. */
export interface ChartNames {
  readonly states: ReadonlySet<string>
  readonly transitions: readonly string[]
}

/**
 * Rebuilds the steps of a task's own chart from the stored events, for tasks that no inspector watched. An event whose
 * transition is not certain gives a step without transitions.
 */
export function rebuiltSteps(events: readonly TaskEvent[], { states, transitions }: ChartNames): ActorStep[] {
  let active: readonly string[] = []
  return events.map(({ taskId, generation, update }): ActorStep => {
    const before = active
    const status = 'statusUpdate' in update ? update.statusUpdate.status : undefined
    if (status) active = statesOf(status.state, states)
    const used = status
      ? transitionBetween(before, active, transitions)
      : transitions.filter(name => before.some(id => name.startsWith(`${id} on work.produced `)))
    return {
      n: generation,
      atMs: Date.parse(status?.timestamp ?? '') || 0,
      kind: 'microstep',
      to: taskId,
      event: { type: 'stored event' },
      states: active,
      transitions: used,
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

/** The longest text of parts in one line, in characters. */
const LONGEST = 300

/** The beginning of the texts of parts, in one line; `…` stands for every other part. */
export function partsText(parts: readonly Part[] = []): string {
  return parts
    .map(part => ('text' in part ? part.text : '…'))
    .join(' ')
    .slice(0, LONGEST)
    .trim()
}

/** The name of an artifact; without one, its text if that is all it has, else its id. */
export function artifactTitle({ name, parts, artifactId }: Artifact): string {
  const [part] = parts
  const text = parts.length === 1 && part && 'text' in part ? partsText(parts) : ''
  return name || (text === '' ? artifactId : `“${text}”`)
}

/** The text in a status; empty for an artifact. */
export function statusMessageText({ update }: TaskEvent): string {
  return 'statusUpdate' in update ? partsText(update.statusUpdate.status.message?.parts) : ''
}

/** An event for people: `input-required: Small or large?`, `artifact coffee.txt`, `more of artifact coffee.txt`. */
export function eventWords(event: TaskEvent): string {
  const { update } = event
  if ('statusUpdate' in update)
    return [stateText(update.statusUpdate.status.state), statusMessageText(event)]
      .filter(text => text !== '')
      .join(': ')
  const {
    artifact: { name, artifactId },
    append
  } = update.artifactUpdate
  return `${append ? 'more of ' : ''}artifact ${name || artifactId}`
}
