import type { AnyEventObject, AnyStateNode, AnyTransitionDefinition } from 'xstate'
import { transitionName } from '../../../runtime/xstate/transition-names.ts'
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
  /** The approximate size of the event in memory. */
  readonly bytes: number
}

/** The size of a step without its event, and of each value in it. */
const STEP_BYTES = 300
const VALUE_BYTES = 32

/** The number of values that are looked at, and the size of an event that has more. */
const MOST_VALUES = 1000
const LARGE_EVENT_BYTES = 1024 * 1024

/** The approximate size of a step with this event, in memory. Looks at a bounded number of values. */
export function sizeOf(event: AnyEventObject): number {
  let bytes = STEP_BYTES
  let values: unknown[] = [event]
  for (let count = 0; count < MOST_VALUES; count += 1) {
    if (values.length === 0) return bytes
    const value = values.pop()
    bytes += typeof value === 'string' ? value.length : VALUE_BYTES
    // An actor in an event is not the event's.
    if (typeof value === 'object' && value !== null && !('sessionId' in value)) values = values.concat(Object.values(value).slice(0, MOST_VALUES))
  }
  return bytes + LARGE_EVENT_BYTES
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
