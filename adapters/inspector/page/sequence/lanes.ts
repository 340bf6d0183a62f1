import type { ActorRow, Step } from '../../feed.ts'
import { CLIENT, RUNTIME, senderOf } from './sender.ts'

/** A column of the sequence: an actor, or what is outside of the actors. */
export interface Lane {
  /** The actor's sessionId; `client` and `runtime` for what is outside. */
  readonly key: string
  readonly title: string
  readonly kind: typeof CLIENT | typeof RUNTIME | ActorRow['kind']
}

const ORDER: readonly Lane['kind'][] = [CLIENT, RUNTIME, 'context', 'negotiation', 'task', 'work', 'child']

/** What the sequence is narrowed to. */
export interface SequenceFilter {
  /** Only what concerns this task. */
  readonly taskId: string | undefined
  /** The steps that actors take in their charts, too. */
  readonly withMicrosteps: boolean
  /** What the event's type or JSON has to have in it. */
  readonly search: string
}

/** The steps that are shown. */
export function shownSteps(steps: readonly Step[], { taskId, withMicrosteps, search }: SequenceFilter, actors: readonly ActorRow[]): Step[] {
  const wanted = search.toLowerCase()
  const concerned = taskId === undefined ? steps : stepsAbout(taskId, steps, actors)
  return concerned.filter(({ kind, event }) => (kind !== 'microstep' || withMicrosteps) && (wanted === '' || JSON.stringify(event).toLowerCase().includes(wanted)))
}

/** The steps of a task's actors, with those of the context meanwhile, from the message on that led to them. */
function stepsAbout(taskId: string, steps: readonly Step[], actors: readonly ActorRow[]): Step[] {
  const taskOf = new Map(actors.map(actor => [actor.sessionId, taskOfActor(actor)]))
  const tasksOf = ({ taskId, from, to }: Step) => [taskId, taskOf.get(to), from === undefined ? undefined : taskOf.get(from)].filter(id => id !== undefined)
  const isAbout = (step: Step) => tasksOf(step).includes(taskId)
  const first = steps.findIndex(isAbout)
  const last = steps.findLastIndex(isAbout)
  const message = steps.slice(0, Math.max(0, first)).findLastIndex(({ from, kind }) => from === undefined && kind === 'event')
  return steps.slice(message < 0 ? Math.max(0, first) : message, last + 1).filter(step => isAbout(step) || tasksOf(step).length === 0)
}

/** A negotiation that was a function is called after the task that it may open. */
function taskOfActor({ taskId, kind, name }: ActorRow): string | undefined {
  return taskId ?? (kind === 'negotiation' && name.endsWith('?') ? name.slice(0, -1) : undefined)
}

/** The columns for steps: the client, the runtime, then the actors that have a part in them, from the context to what the work invokes. */
export function lanesOf(steps: readonly Step[], actors: readonly ActorRow[]): Lane[] {
  const present = new Set(steps.flatMap(step => [senderOf(step, actors), step.to]))
  const known = new Map(actors.map(actor => [actor.sessionId, actor]))
  const lanes = Array.from(present, key => laneOf(key, known.get(key)))
  return lanes.toSorted((one, other) => ORDER.indexOf(one.kind) - ORDER.indexOf(other.kind))
}

function laneOf(key: string, actor: ActorRow | undefined): Lane {
  if (key === CLIENT || key === RUNTIME) return { key, title: key, kind: key }
  return { key, title: actor?.name ?? key, kind: actor?.kind ?? 'child' }
}
