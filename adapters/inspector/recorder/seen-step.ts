import type { AnyActorRef, AnyEventObject } from 'xstate'
import type { ActiveState } from '../../../runtime/xstate/persisted-snapshot.ts'
import { takenName } from '../../../runtime/xstate/written-chart.ts'
import type { ActorKind, ActorRow, ChartId, ShownEvent, ActorStep } from '../feed.ts'

/** A recorded, unformatted step. */
export interface SeenStep {
  readonly n: number
  readonly atMs: number
  readonly kind: ActorStep['kind']
  readonly from: string | undefined
  readonly to: ActorEntry
  readonly event: AnyEventObject
  readonly nodes: readonly ActiveState[] | undefined
  /** As XState's inspection has them. */
  readonly transitions: readonly object[] | undefined
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

/**
 * The approximate size of a step with this event, in memory. Looks at a bounded number of values, and allocates
 * nothing.
 */
export function stepSizeOf(event: AnyEventObject): number {
  left = MOST_VALUES
  const bytes = STEP_BYTES + valueSize(event)
  return left < 0 ? bytes + LARGE_EVENT_BYTES : bytes
}

/** The number of values that are still looked at. */
let left = 0

function valueSize(value: unknown): number {
  left -= 1
  if (typeof value === 'string') return Buffer.byteLength(value)
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

/** A step for pages. */
export function shownStep(
  { n, atMs, kind, from, to, event, nodes, transitions, generation }: SeenStep,
  redact: Redact
): ActorStep {
  const { id, taskId } = to
  return {
    n,
    atMs,
    kind,
    to: id,
    event: shownEvent(event, redact),
    ...(from !== undefined && { from }),
    ...(nodes && { states: stateIds(nodes) }),
    ...(transitions && { transitions: transitions.map(takenName) }),
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

/** The recorder's data about an actor, without a reference to the actor. */
export interface ActorEntry {
  /** Its id in pages: its `sessionId`, or that from before its context was restored. */
  readonly id: string
  readonly sessionId: string
  readonly name: string
  readonly kind: ActorKind
  readonly source: string | undefined
  readonly chart: ChartId | undefined
  readonly taskId: string | undefined
  readonly parent: string | undefined
  status: ActorRow['status']
  nodes: readonly ActiveState[]
  /** Incremented with each change in its context. */
  version: number
  /** Whether a step of its chart is recorded. */
  hasStepped: boolean
}

type Relations = Pick<ActorEntry, 'kind' | 'chart' | 'taskId' | 'source'>

/** Classifies an actor by its parent. `before`: its entry from before its context was restored. */
export function entryOf(ref: AnyActorRef, parent: ActorEntry | undefined, before: ActorEntry | undefined): ActorEntry {
  const { sessionId, id: name } = ref
  const { kind, source, chart, taskId } = relationsOf(ref, parent)
  const { id, hasStepped } = before ?? { id: sessionId, hasStepped: false }
  return {
    id,
    sessionId,
    name,
    kind,
    source,
    chart: hasChart(ref) ? chart : undefined,
    taskId,
    parent: parent?.id,
    status: 'active',
    nodes: [],
    version: 0,
    hasStepped
  }
}

/** An actor for pages. */
export function rowOf({ id, name, kind, source, chart, taskId, parent, status, nodes }: ActorEntry): ActorRow {
  return {
    sessionId: id,
    name,
    kind,
    status,
    states: stateIds(nodes),
    ...(source !== undefined && { source }),
    ...(chart && { chart }),
    ...(taskId !== undefined && { taskId }),
    ...(parent !== undefined && { parent })
  }
}

/** The ids of active states, outermost first. */
export function stateIds(nodes: readonly ActiveState[]): string[] {
  return nodes.toSorted((a, b) => a.order - b.order).map(({ id }) => id)
}

function relationsOf({ id, src }: AnyActorRef, parent: ActorEntry | undefined): Relations {
  if (!parent) return { kind: 'context', chart: 'context', taskId: undefined, source: undefined }
  const { kind, taskId } = parent
  if (kind === 'context')
    return src === 'task'
      ? { kind: 'task', chart: 'task', taskId: id, source: undefined }
      : { kind: 'negotiation', chart: 'negotiation', taskId: undefined, source: undefined }
  if (kind === 'task') return { kind: 'work', chart: 'work', taskId, source: undefined }
  // Invoked actors in an agent's chart have names, since others cannot be restored.
  return { kind: 'child', chart: `child:${src as string}`, taskId, source: src as string }
}

function hasChart({ logic }: AnyActorRef & { readonly logic?: object }): boolean {
  return logic !== undefined && 'config' in logic && 'root' in logic
}
