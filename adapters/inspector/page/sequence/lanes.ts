import { parseType } from '../../../../machines/xstate-names.ts'
import type { ActorRow, ActorStep } from '../../feed.ts'
import { eventText } from '../wording.ts'

/** The lane of the client. */
const CLIENT = 'client'

/** The lane of the runtime: starting tasks, deadlines, recovery. */
const RUNTIME = 'runtime'

/** A column of the sequence: an actor, the client, or the runtime. */
export interface Lane {
  /** The actor's sessionId, `client`, or `runtime`. */
  readonly key: string
  readonly title: string
  readonly kind: typeof CLIENT | typeof RUNTIME | ActorRow['kind']
}

const ORDER: readonly Lane['kind'][] = [CLIENT, RUNTIME, 'context', 'negotiation', 'task', 'work', 'child']

/** A filter of steps. */
export interface SequenceFilter {
  /** Only steps of this task. */
  readonly taskId: string | undefined
  /** Includes microsteps. */
  readonly withMicrosteps: boolean
  /** Text that the event's JSON contains. */
  readonly search: string
}

/** The filtered steps. */
export function shownSteps(
  steps: readonly ActorStep[],
  { taskId, withMicrosteps, search }: SequenceFilter,
  actors: readonly ActorRow[]
): ActorStep[] {
  const wanted = search.toLowerCase()
  const concerned = taskId === undefined ? steps : stepsAbout(taskId, steps, actors)
  return concerned.filter(
    ({ kind, event }) =>
      (kind !== 'microstep' || withMicrosteps) &&
      (wanted === '' || JSON.stringify(event).toLowerCase().includes(wanted))
  )
}

/** The steps of a task's actors, and those of the context meanwhile, beginning with the message that led to them. */
function stepsAbout(taskId: string, steps: readonly ActorStep[], actors: readonly ActorRow[]): ActorStep[] {
  const taskOf = new Map(actors.map(actor => [actor.sessionId, taskOfActor(actor)]))
  const tasksOf = ({ taskId, from, to }: ActorStep) =>
    [taskId, taskOf.get(to), from === undefined ? undefined : taskOf.get(from)].filter(id => id !== undefined)
  const isAbout = (step: ActorStep) => tasksOf(step).includes(taskId)
  const first = steps.findIndex(isAbout)
  const last = steps.findLastIndex(isAbout)
  const message = steps
    .slice(0, Math.max(0, first))
    .findLastIndex(({ from, kind }) => from === undefined && kind === 'event')
  return steps
    .slice(message < 0 ? Math.max(0, first) : message, last + 1)
    .filter(step => isAbout(step) || tasksOf(step).length === 0)
}

/** A negotiation by a function is named after the task that it may open. */
function taskOfActor({ taskId, kind, name }: ActorRow): string | undefined {
  return taskId ?? (kind === 'negotiation' && name.endsWith('?') ? name.slice(0, -1) : undefined)
}

/** The columns for steps: the client, the runtime, then the involved actors, from the context to invoked actors. */
export function lanesOf(steps: readonly ActorStep[], actors: readonly ActorRow[]): Lane[] {
  const present = new Set(steps.flatMap(step => [senderOf(step, actors), step.to]))
  const known = new Map(actors.map(actor => [actor.sessionId, actor]))
  const lanes = Array.from(present, key => laneOf(key, known.get(key)))
  return lanes.toSorted((one, other) => ORDER.indexOf(one.kind) - ORDER.indexOf(other.kind))
}

function laneOf(key: string, actor: ActorRow | undefined): Lane {
  if (key === CLIENT || key === RUNTIME) return { key, title: key, kind: key }
  return { key, title: actor?.source ?? actor?.name ?? key, kind: actor?.kind ?? 'child' }
}

/** The events that a client's requests become. */
const SAID: ReadonlySet<string> = new Set([
  'request.received',
  'message.received',
  'message.steered',
  'message.queued',
  'task.cancel',
  'authorization.received'
])

/**
 * The sender of a step's event: an actor's sessionId, or a lane. An event from outside of the actors belongs to the
 * client or the runtime. It may also be a word of work to its task, or be passed on from a task to its work, or from
 * work to an invoked actor.
 */
export function senderOf({ kind, from, to, event: { type }, taskId }: ActorStep, actors: readonly ActorRow[]): string {
  if (kind !== 'event') return to
  if (from !== undefined) return from
  const receiver = actors.find(({ sessionId }) => sessionId === to)
  if (receiver?.kind === 'work' || receiver?.kind === 'child') return receiver.parent ?? RUNTIME
  if (type.startsWith('work.'))
    return actors.findLast(actor => actor.kind === 'work' && actor.taskId === taskId)?.sessionId ?? RUNTIME
  return SAID.has(type) ? CLIENT : RUNTIME
}

/** The name of a step's event. That of the end of an actor does not repeat who it is. */
export function stepText({ event: { type } }: ActorStep, actors: readonly ActorRow[]): string {
  const { kind, of, id } = parseType(type) ?? {}
  if (of !== 'actor' || !actors.some(({ name }) => name === id)) return eventText(type)
  return kind === 'done' ? 'is done' : 'fails'
}
