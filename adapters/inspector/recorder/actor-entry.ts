import type { AnyActorRef, AnyStateNode } from 'xstate'
import type { ActorKind, ActorRow, ChartId } from '../feed.ts'

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
  nodes: readonly AnyStateNode[]
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

/** The ids of state nodes, outermost first. */
export function stateIds(nodes: readonly AnyStateNode[]): string[] {
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
