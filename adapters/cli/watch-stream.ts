import type { StreamResponse } from '../../machines/protocol/objects.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import type { TaskState } from '../../machines/protocol/states.ts'

/** What a stream has told so far. */
export interface Watched {
  contextId?: string | undefined
  /** The task, if the agent opened one, as of the last event. */
  task?: { readonly id: string; state: TaskState }
  /** The answer, if there is no task. */
  message?: Message
  /** Ids of the artifacts that came in chunks. */
  readonly chunked: Set<string>
}

/** Notes what an event of a stream says. */
export function note(watched: Watched, event: StreamResponse): void {
  if ('message' in event) {
    watched.message = event.message
    watched.contextId = event.message.contextId
  } else if ('task' in event) {
    watched.task = { id: event.task.id, state: event.task.status.state }
    watched.contextId = event.task.contextId
  } else if ('statusUpdate' in event) {
    watched.task = { id: event.statusUpdate.taskId, state: event.statusUpdate.status.state }
  } else if (event.artifactUpdate.append) {
    watched.chunked.add(event.artifactUpdate.artifact.artifactId)
  }
}
