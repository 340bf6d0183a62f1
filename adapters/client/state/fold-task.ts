import { isObject } from '../../../machines/protocol/codec/json.ts'
import type {
  Artifact,
  StreamResponse,
  Task,
  TaskArtifactUpdateEvent,
  TaskStatusUpdateEvent
} from '../../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import { checkArgument } from '../../../runtime/primitives/options.ts'
import { taskReferenceOf } from '../requests.ts'

/**
 * The task after an event of its stream: what GetTask would return. Start with `undefined`. It changes nothing in
 * place, so that a page can compare tasks and artifacts by identity. A message without a task and an event of another
 * task return the same task. So does an event that the task already includes, which its generation shows with the
 * reliability extension. A whole task replaces one of the same generation if its history is longer, since events have
 * no messages of clients.
 */
export function foldTask(task: Task | undefined, event: StreamResponse): Task | undefined {
  checkArgument(event, [isObject, 'an event of a stream as its second argument'], 'foldTask(task, event)')
  if ('message' in event || (task && isKnown(task, event))) return task
  if ('task' in event) return event.task
  const update = 'statusUpdate' in event ? event.statusUpdate : event.artifactUpdate
  const before = task ?? { id: update.taskId, contextId: update.contextId, status: { state: 'TASK_STATE_SUBMITTED' } }
  return 'statusUpdate' in event ? withStatus(before, event.statusUpdate) : withArtifact(before, event.artifactUpdate)
}

function isKnown(task: Task, event: StreamResponse): boolean {
  const { taskId, generation } = taskReferenceOf(event)
  const { generation: known } = taskReferenceOf({ task })
  if (taskId !== task.id) return true
  if (generation === undefined || known === undefined) return false
  return (
    generation < known ||
    (generation === known && !('task' in event && lengthOf(event.task.history) > lengthOf(task.history)))
  )
}

function lengthOf(list: readonly unknown[] = []): number {
  return list.length
}

/** The message of the status before moves to the history (§3.7). */
function withStatus(task: Task, { status, metadata }: TaskStatusUpdateEvent): Task {
  const { message } = task.status
  return {
    ...task,
    status,
    ...(message && { history: [...(task.history ?? []), message] }),
    ...(metadata && { metadata: { ...task.metadata, ...metadata } })
  }
}

function withArtifact(task: Task, { artifact, append, metadata = {} }: TaskArtifactUpdateEvent): Task {
  const { artifacts = [] } = task
  const place = artifacts.findIndex(({ artifactId }) => artifactId === artifact.artifactId)
  const known = artifacts[place]
  const generation = metadata[RELIABILITY_EXTENSION]
  return {
    ...task,
    artifacts: known ? artifacts.with(place, append ? appended(known, artifact) : artifact) : [...artifacts, artifact],
    ...(generation !== undefined && { metadata: { ...task.metadata, [RELIABILITY_EXTENSION]: generation } })
  }
}

/** Adds the parts of a chunk at the end, and replaces the other members (§4.2.2). */
function appended(known: Artifact, chunk: Artifact): Artifact {
  const metadata = known.metadata || chunk.metadata ? { metadata: { ...known.metadata, ...chunk.metadata } } : {}
  return { ...known, ...chunk, parts: [...known.parts, ...chunk.parts], ...metadata }
}
