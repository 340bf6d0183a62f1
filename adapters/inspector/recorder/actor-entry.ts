import type { AnyActorRef, AnyStateNode } from 'xstate'
import type { ActorKind, ActorRow, ChartId } from '../feed.ts'

/** An actor as the recorder knows it; it holds on to nothing of the actor itself. */
export interface ActorEntry {
  readonly sessionId: string
  readonly name: string
  readonly kind: ActorKind
  readonly chart: ChartId | undefined
  readonly taskId: string | undefined
  readonly parent: string | undefined
  status: ActorRow['status']
  nodes: readonly AnyStateNode[]
  /** Grows with each change within its context. */
  version: number
}

type Relations = Pick<ActorEntry, 'kind' | 'chart' | 'taskId'>

/** What an actor is, by its place below its parent. */
export function entryOf(ref: AnyActorRef, parent: ActorEntry | undefined): ActorEntry {
  const { sessionId, id } = ref
  const { kind, chart, taskId } = relationsOf(ref, parent)
  return { sessionId, name: id, kind, chart: hasChart(ref) ? chart : undefined, taskId, parent: parent?.sessionId, status: 'active', nodes: [], version: 0 }
}

/** An actor as pages see it. */
export function rowOf({ sessionId, name, kind, chart, taskId, parent, status, nodes }: ActorEntry): ActorRow {
  return { sessionId, name, kind, status, states: stateIds(nodes), ...(chart && { chart }), ...(taskId !== undefined && { taskId }), ...(parent !== undefined && { parent }) }
}

/** The ids of state nodes, outermost first. */
export function stateIds(nodes: readonly AnyStateNode[]): string[] {
  return nodes.toSorted((a, b) => a.order - b.order).map(({ id }) => id)
}

function relationsOf({ id, src }: AnyActorRef, parent: ActorEntry | undefined): Relations {
  if (!parent) return { kind: 'context', chart: 'context', taskId: undefined }
  const { kind, taskId } = parent
  if (kind === 'context') return src === 'task' ? { kind: 'task', chart: 'task', taskId: id } : { kind: 'negotiation', chart: 'negotiation', taskId: undefined }
  if (kind === 'task') return { kind: 'work', chart: 'work', taskId }
  // The charts of agents have names for their actors: others could not be restored.
  return { kind: 'child', chart: `child:${src as string}`, taskId }
}

function hasChart({ logic }: AnyActorRef & { readonly logic?: object }): boolean {
  return logic !== undefined && 'config' in logic && 'root' in logic
}
