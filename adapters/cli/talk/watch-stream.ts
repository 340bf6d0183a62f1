import type {
  Artifact,
  StreamResponse,
  TaskArtifactUpdateEvent,
  TaskStatus
} from '../../../machines/protocol/objects.ts'
import type { Message } from '../../../machines/protocol/parts.ts'
import type { TaskState } from '../../../machines/protocol/states.ts'
import { oneLine, sizeText } from '../text/terminal-text.ts'
import { bytesIn } from './artifact-parts.ts'
import { messageText } from './results.ts'

/** How much of an artifact has arrived. */
export interface Received {
  readonly name: string
  /** The number of chunks. An artifact of the first snapshot counts its parts, since its chunks are unknown. */
  readonly chunks: number
  readonly bytes: number
}

/** The events of a stream so far. */
export interface Watched {
  contextId?: string | undefined
  /** The task as of the last event, if the agent opened one. */
  task?: { readonly id: string; readonly state: TaskState }
  /** The agent's message with the newest status: the question of a task that waits. */
  question?: Message | undefined
  /** The answer, if the agent opened no task. */
  message?: Message
  /** The task's artifacts, by their ids. */
  artifacts: Map<string, Received>
  /** The agent's last message or artifact in this state, in one line. */
  newest?: string | undefined
  isLost: boolean
}

export function nothingYet(): Watched {
  return { artifacts: new Map(), isLost: false }
}

/** Records an event of a stream. */
export function note(watched: Watched, event: StreamResponse): void {
  if ('message' in event) {
    watched.message = event.message
    watched.contextId = event.message.contextId
  } else if ('task' in event) {
    const { id, contextId, status, artifacts = [] } = event.task
    watched.contextId = contextId
    watched.artifacts = new Map(artifacts.map(artifact => [artifact.artifactId, whole(artifact)]))
    noteStatus(watched, id, status)
  } else if ('statusUpdate' in event) {
    noteStatus(watched, event.statusUpdate.taskId, event.statusUpdate.status)
  } else {
    noteChunk(watched, event.artifactUpdate)
  }
}

/** An artifact of the first snapshot. */
function whole({ artifactId, name = artifactId, parts }: Artifact): Received {
  return { name, chunks: parts.length, bytes: bytesIn(parts) }
}

function noteStatus(watched: Watched, id: string, { state, message }: TaskStatus): void {
  if (message || watched.task?.state !== state) watched.newest = message && oneLine(messageText(message))
  watched.question = message
  watched.task = { id, state }
}

function noteChunk(watched: Watched, { artifact, append }: TaskArtifactUpdateEvent): void {
  const { artifactId, name, parts } = artifact
  // `append` refers to an earlier chunk, even if this stream has not seen it.
  const before = append
    ? (watched.artifacts.get(artifactId) ?? { name: artifactId, chunks: 1, bytes: 0 })
    : { name: artifactId, chunks: 0, bytes: 0 }
  const now = { name: name ?? before.name, chunks: before.chunks + 1, bytes: before.bytes + bytesIn(parts) }
  watched.artifacts.set(artifactId, now)
  watched.newest = receivedText(now)
}

/** The name comes last, because it may be long and the line is cut at its end. */
function receivedText({ name, chunks, bytes }: Received): string {
  return `${chunks > 1 ? `${chunks} chunks, ` : ''}${sizeText(bytes)} of ${oneLine(name)}`
}
