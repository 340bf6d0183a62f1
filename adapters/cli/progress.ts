import type { Artifact, StreamResponse, TaskStatus } from '../../machines/protocol/objects.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import { bytesIn } from './artifact-parts.ts'
import { messageText } from './message-text.ts'
import { oneLine, sizeText } from './terminal-text.ts'

/**
 * An event of a stream as lines for the user. Later chunks say nothing new, and answers come as results; a task that
 * others have watched before has a line for each artifact that is there.
 */
export function progressLines(event: StreamResponse): string[] {
  if ('message' in event) return []
  if ('statusUpdate' in event) return [statusText(event.statusUpdate.status)]
  if ('task' in event) {
    const { id, status, artifacts = [] } = event.task
    return [`${statusText(status)} (task ${oneLine(id)})`, ...artifacts.map(artifactText)]
  }
  const { artifact, append } = event.artifactUpdate
  return append ? [] : [`artifact ${nameOf(artifact)}`]
}

/** An artifact that was there at first, with what it held then. */
function artifactText(artifact: Artifact): string {
  return `artifact ${nameOf(artifact)} (${sizeText(bytesIn(artifact.parts))})`
}

function nameOf({ artifactId, name = artifactId }: Artifact): string {
  return oneLine(name)
}

function statusText({ state, message }: TaskStatus): string {
  return [stateText(state), ...(message ? [messageText(message)] : [])].join(': ')
}

/** A task's state as people read it: `input-required`. */
function stateText(state: TaskState): string {
  return state.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-')
}
