import type { ActorRow, Step } from '../../feed.ts'

/** A column of the sequence: an actor, or what is outside of the actors. */
export interface Lane {
  /** The actor's sessionId; `client` for what is outside. */
  readonly key: string
  readonly title: string
  readonly kind: 'client' | ActorRow['kind']
}

/** The lane of what comes from outside the actors. */
const CLIENT: Lane = { key: 'client', title: 'client', kind: 'client' }

const ORDER: readonly Lane['kind'][] = ['client', 'context', 'negotiation', 'task', 'work', 'child']

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
  const taskOf = new Map(actors.map(actor => [actor.sessionId, actor.taskId]))
  const wanted = search.toLowerCase()
  return steps.filter(step => {
    if (step.kind === 'microstep' && !withMicrosteps) return false
    const others = [step.taskId ?? taskOf.get(step.to), step.from && taskOf.get(step.from)].filter(id => id !== undefined)
    if (taskId !== undefined && others.length > 0 && !others.includes(taskId)) return false
    return wanted === '' || JSON.stringify(step.event).toLowerCase().includes(wanted)
  })
}

/** The columns for steps: the client, then the actors that have a part in them, from the context to what the work invokes. */
export function lanesOf(steps: readonly Step[], actors: readonly ActorRow[]): Lane[] {
  const present = new Set(steps.flatMap(({ from, to }) => [from ?? CLIENT.key, to]))
  const known = new Map(actors.map(actor => [actor.sessionId, actor]))
  const lanes = Array.from(present, key => (key === CLIENT.key ? CLIENT : laneOf(key, known.get(key))))
  return lanes.toSorted((one, other) => ORDER.indexOf(one.kind) - ORDER.indexOf(other.kind))
}

function laneOf(key: string, actor: ActorRow | undefined): Lane {
  return { key, title: actor?.name ?? key, kind: actor?.kind ?? 'child' }
}
