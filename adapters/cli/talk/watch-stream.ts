import type { Artifact, StreamResponse, TaskArtifactUpdateEvent, TaskStatus } from '../../../machines/protocol/objects.ts'
import type { Message } from '../../../machines/protocol/parts.ts'
import type { TaskState } from '../../../machines/protocol/states.ts'
import { messageText } from '../text/message-text.ts'
import { oneLine, sizeText } from '../text/terminal-text.ts'
import { bytesIn } from './artifact-parts.ts'

/** How much of an artifact has come. */
export interface Received {
  readonly name: string
  /** The chunks that it came in. One that was there at first has as many as it has parts: nobody can tell them apart. */
  readonly chunks: number
  readonly bytes: number
}

/** What a stream has told so far. */
export interface Watched {
  contextId?: string | undefined
  /** The task, if the agent opened one, as of the last event. */
  task?: { readonly id: string; readonly state: TaskState }
  /** The answer, if there is no task. */
  message?: Message
  /** The task's artifacts, by their ids. */
  artifacts: Map<string, Received>
  /** What the agent said or gave last in this state, in one line. */
  newest?: string | undefined
  /** Whether the connection is lost. */
  isLost: boolean
}

/** What is known before the first event. */
export function nothingYet(): Watched {
  return { artifacts: new Map(), isLost: false }
}

/** Notes what an event of a stream says. */
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

/** An artifact that was there at first. */
function whole({ artifactId, name = artifactId, parts }: Artifact): Received {
  return { name, chunks: parts.length, bytes: bytesIn(parts) }
}

function noteStatus(watched: Watched, id: string, { state, message }: TaskStatus): void {
  if (message || watched.task?.state !== state) watched.newest = message && oneLine(messageText(message))
  watched.task = { id, state }
}

function noteChunk(watched: Watched, { artifact, append }: TaskArtifactUpdateEvent): void {
  const { artifactId, name, parts } = artifact
  // What is appended to has come before, also if nobody told us of it.
  const before = append ? (watched.artifacts.get(artifactId) ?? { name: artifactId, chunks: 1, bytes: 0 }) : { name: artifactId, chunks: 0, bytes: 0 }
  const now = { name: name ?? before.name, chunks: before.chunks + 1, bytes: before.bytes + bytesIn(parts) }
  watched.artifacts.set(artifactId, now)
  watched.newest = receivedText(now)
}

/** Names, which may be of any length, come last, where a line is cut. */
function receivedText({ name, chunks, bytes }: Received): string {
  return `${chunks > 1 ? `${chunks} chunks, ` : ''}${sizeText(bytes)} of ${oneLine(name)}`
}
