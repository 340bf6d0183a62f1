import type { AnyEventObject, AnyStateNode, AnyTransitionDefinition } from 'xstate'
import { transitionName } from '../../drawing/chart-parts.ts'
import type { ShownEvent, Step } from '../feed.ts'
import { stateIds, type ActorEntry } from './actor-entry.ts'

/** A recorded, unformatted step. */
export interface SeenStep {
  readonly n: number
  readonly atMs: number
  readonly kind: Step['kind']
  readonly from: string | undefined
  readonly to: ActorEntry
  readonly event: AnyEventObject
  readonly nodes: readonly AnyStateNode[] | undefined
  readonly transitions: readonly AnyTransitionDefinition[] | undefined
  /** The number of the context's turn in which it happened. */
  readonly turn: number
  generation: number | undefined
}

/** Copies a value without secrets. */
export type Redact = (value: unknown) => unknown

/** The maximum length of a shown event's JSON. */
const LONGEST_EVENT = 4096

const names = new WeakMap<AnyTransitionDefinition, string>()

/** A step for pages. */
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

/** An event without secrets; only its type if it is too long or not JSON. */
export function shownEvent(event: AnyEventObject, redact: Redact): ShownEvent {
  const { type } = event
  try {
    const shown = { ...(redact(event) as object), type }
    if (JSON.stringify(shown).length <= LONGEST_EVENT) return shown
  } catch {
    // The redact function is the user's, and may return something that is not JSON.
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
