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

/** The approximate size of a step with this event, in memory. Looks at a bounded number of values, and allocates nothing. */
export function sizeOf(event: AnyEventObject): number {
  left = MOST_VALUES
  const bytes = STEP_BYTES + valueSize(event)
  return left < 0 ? bytes + LARGE_EVENT_BYTES : bytes
}

/** The number of values that are still looked at. */
let left = 0

function valueSize(value: unknown): number {
  left -= 1
  if (typeof value === 'string') return value.length
  // An actor in an event is not the event's.
  if (typeof value !== 'object' || value === null || 'sessionId' in value) return VALUE_BYTES
  if (ArrayBuffer.isView(value)) return value.byteLength
  let bytes = VALUE_BYTES
  if (Array.isArray(value)) for (let i = 0; i < value.length && left >= 0; i += 1) bytes += valueSize(value[i])
  else
    for (const name in value) {
      if (left < 0) break
      bytes += valueSize((value as Readonly<Record<string, unknown>>)[name])
    }
  return bytes
}

/** Copies a value without secrets. */
export type Redact = (value: unknown) => unknown

/** The maximum length of a shown event's JSON. */
const LONGEST_EVENT = 4096

const names = new WeakMap<AnyTransitionDefinition, string>()

/** A step for pages. */
export function shownStep(
  { n, atMs, kind, from, to, event, nodes, transitions, generation }: SeenStep,
  redact: Redact
): Step {
  const { id, taskId } = to
  return {
    n,
    atMs,
    kind,
    to: id,
    event: shownEvent(event, redact),
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
