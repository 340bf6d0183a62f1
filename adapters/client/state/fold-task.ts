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
 * task return the same task. So does an event that the task already includes, which its generation shows in 1.1 and
 * with the reliability extension. A whole task replaces one of the same generation if it has another status or more
 * messages, since events have no messages of clients.
 */
export function foldTask(task: Task | undefined, event: StreamResponse): Task | undefined {
  checkArgument(event, [isObject, 'an event of a stream as its second argument'], 'foldTask(task, event)')
  if ('message' in event || (task && isKnown(task, event))) return task
  if ('task' in event) return event.task
  const update = 'statusUpdate' in event ? event.statusUpdate : event.artifactUpdate
  const before = task ?? taskBefore(update)
  return 'statusUpdate' in event ? withStatus(before, event.statusUpdate) : withArtifact(before, event.artifactUpdate)
}

function isKnown(task: Task, event: StreamResponse): boolean {
  const { taskId, generation } = taskReferenceOf(event)
  const { generation: known } = taskReferenceOf({ task })
  if (taskId !== task.id) return true
  if (generation === undefined || known === undefined) return false
  return generation < known || (generation === known && !('task' in event && hasMore(event.task, task)))
}

/** Whether a task has news for another one of the same generation. */
function hasMore(read: Task, task: Task): boolean {
  return (
    lengthOf(read.history) > lengthOf(task.history) ||
    lengthOf(read.timeline) > lengthOf(task.timeline) ||
    JSON.stringify(read.status) !== JSON.stringify(task.status)
  )
}

function lengthOf(list: readonly unknown[] = []): number {
  return list.length
}

/** The task before its first event, which has a timeline in 1.1. */
function taskBefore({ taskId, contextId, generation }: TaskStatusUpdateEvent | TaskArtifactUpdateEvent): Task {
  const task: Task = { id: taskId, contextId, status: { state: 'TASK_STATE_SUBMITTED' } }
  return generation === undefined ? task : { ...task, timeline: [] }
}

/** The message of the status before moves to the history (§3.7), and the status becomes the end of the timeline. */
function withStatus(task: Task, { status, metadata, generation }: TaskStatusUpdateEvent): Task {
  const { message } = task.status
  const { timeline } = task
  return {
    ...withGeneration(task, generation),
    status,
    ...(message && { history: [...(task.history ?? []), message] }),
    ...(timeline && { timeline: [...timeline, { status, ...(generation !== undefined && { generation }) }] }),
    ...(metadata && { metadata: { ...task.metadata, ...metadata } })
  }
}

function withArtifact(task: Task, update: TaskArtifactUpdateEvent): Task {
  const { artifact: chunk, append, metadata = {}, generation } = update
  const { artifacts = [] } = task
  const place = artifacts.findIndex(({ artifactId }) => artifactId === chunk.artifactId)
  const known = artifacts[place]
  const artifact = withGenerations(known && append ? appended(known, chunk) : chunk, known, update)
  const reliability = metadata[RELIABILITY_EXTENSION]
  return {
    ...withGeneration(task, generation),
    artifacts: known ? artifacts.with(place, artifact) : [...artifacts, artifact],
    ...(reliability !== undefined && { metadata: { ...task.metadata, [RELIABILITY_EXTENSION]: reliability } })
  }
}

/** Without a generation, an event leaves a task whose generation is unknown. */
function withGeneration(task: Task, generation: string | undefined): Task {
  const copy = { ...task }
  delete copy.generation
  return generation === undefined ? copy : { ...copy, generation }
}

/**
 * An artifact with its generations in 1.1, after an event: the first one that has it, and the one that completes it. A
 * chunk that appends leaves it open unless it is the last.
 */
function withGenerations(
  artifact: Artifact,
  known: Artifact | undefined,
  { artifact: chunk, append = false, lastChunk = false, generation }: TaskArtifactUpdateEvent
): Artifact {
  const start = known?.startGeneration ?? chunk.startGeneration ?? generation
  const end = chunk.endGeneration ?? (lastChunk || !append ? generation : undefined)
  const copy = { ...artifact }
  delete copy.endGeneration
  return {
    ...copy,
    ...(start !== undefined && { startGeneration: start }),
    ...(end !== undefined && { endGeneration: end })
  }
}

/** Adds the parts of a chunk at the end, and replaces the other members (§4.2.2). */
function appended(known: Artifact, chunk: Artifact): Artifact {
  const metadata = known.metadata || chunk.metadata ? { metadata: { ...known.metadata, ...chunk.metadata } } : {}
  return { ...known, ...chunk, parts: [...known.parts, ...chunk.parts], ...metadata }
}
