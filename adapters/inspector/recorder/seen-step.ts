import type { AnyEventObject, AnyStateNode, AnyTransitionDefinition } from 'xstate'
import { transitionName } from '../../drawing/chart-parts.ts'
import type { ShownEvent, Step } from '../feed.ts'
import { stateIds, type ActorEntry } from './actor-entry.ts'

/** A step as it was seen, before anybody asked what is in it. */
export interface SeenStep {
  readonly n: number
  readonly atMs: number
  readonly kind: Step['kind']
  readonly from: string | undefined
  readonly to: ActorEntry
  readonly event: AnyEventObject
  readonly nodes: readonly AnyStateNode[] | undefined
  readonly transitions: readonly AnyTransitionDefinition[] | undefined
  /** Which commit of its context it led to, if to any. */
  readonly turn: number
  generation: number | undefined
}

/** Makes a copy of a value, without what nobody is to see. */
export type Redact = (value: unknown) => unknown

/** Characters of an event's JSON that are shown. */
const LONGEST_EVENT = 4096

const names = new WeakMap<AnyTransitionDefinition, string>()

/** A step as pages see it. */
export function shownStep({ n, atMs, kind, from, to, event, nodes, transitions, generation }: SeenStep, redact: Redact): Step {
  const { sessionId, taskId } = to
  return {
    n, atMs, kind, to: sessionId, event: shownEvent(event, redact),
    ...(from !== undefined && { from }),
    ...(nodes && { states: stateIds(nodes) }),
    ...(transitions && { transitions: transitions.map(nameOf) }),
    ...(taskId !== undefined && { taskId }),
    ...(generation !== undefined && { generation })
  }
}

/** An event without secrets; only its type if it is too long, or cannot be shown. */
export function shownEvent(event: AnyEventObject, redact: Redact): ShownEvent {
  const { type } = event
  try {
    const shown = { ...(redact(event) as object), type }
    if (JSON.stringify(shown).length <= LONGEST_EVENT) return shown
  } catch {
    // What redacts is its author's code, and may give what JSON has no form for.
  }
  return { type, cut: true }
}

function nameOf(transition: AnyTransitionDefinition): string {
  const known = names.get(transition)
  if (known !== undefined) return known
  const name = transitionName(transition)
  names.set(transition, name)
  return name
}
