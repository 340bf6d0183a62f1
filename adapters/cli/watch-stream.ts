import type { StreamResponse, TaskArtifactUpdateEvent } from '../../machines/protocol/objects.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import type { TaskState } from '../../machines/protocol/states.ts'

/** What a stream has told so far. */
export interface Watched {
  contextId?: string | undefined
  /** The task, if the agent opened one, as of the last event. */
  task?: { readonly id: string; readonly state: TaskState }
  /** The answer, if there is no task. */
  message?: Message
  /**
   * How many chunks the task's artifacts came in, by their ids. One that was there at first has as many as it has parts:
   * nobody can tell them apart.
   */
  chunks: Map<string, number>
}

/** What is known before the first event. */
export function nothingYet(): Watched {
  return { chunks: new Map() }
}

/** Notes what an event of a stream says. */
export function note(watched: Watched, event: StreamResponse): void {
  if ('message' in event) {
    watched.message = event.message
    watched.contextId = event.message.contextId
  } else if ('task' in event) {
    const { id, contextId, status, artifacts = [] } = event.task
    watched.contextId = contextId
    watched.chunks = new Map(artifacts.map(({ artifactId, parts }) => [artifactId, parts.length]))
    watched.task = { id, state: status.state }
  } else if ('statusUpdate' in event) {
    watched.task = { id: event.statusUpdate.taskId, state: event.statusUpdate.status.state }
  } else {
    noteChunk(watched, event.artifactUpdate)
  }
}

function noteChunk({ chunks }: Watched, { artifact: { artifactId }, append }: TaskArtifactUpdateEvent): void {
  // What is appended to has come before, also if nobody told us of it.
  const before = append ? (chunks.get(artifactId) ?? 1) : 0
  chunks.set(artifactId, before + 1)
}
