import type { StreamResponse, TaskStatus } from '../../machines/protocol/objects.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import { messageParts } from './artifact-parts.ts'
import { shortly } from './results.ts'
import { oneLine, plain } from './terminal-text.ts'

/** An event of a stream as one line for the user, or nothing if it says nothing new: later chunks, and answers, which come as results. */
export function progressLine(event: StreamResponse): string | undefined {
  if ('message' in event) return undefined
  if ('task' in event) return `${statusText(event.task.status)} (task ${oneLine(event.task.id)})`
  if ('statusUpdate' in event) return statusText(event.statusUpdate.status)
  const { artifact, append } = event.artifactUpdate
  return append ? undefined : `artifact ${oneLine(artifact.name ?? artifact.artifactId)}`
}

/** A task's state as people read it: `input-required`. */
export function stateText(state: TaskState): string {
  return state.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-')
}

function statusText({ state, message }: TaskStatus): string {
  const words = message ? messageParts(message).map(given => ('text' in given ? plain(given.text) : shortly(given))) : []
  return [stateText(state), ...(words.length === 0 ? [] : [words.join(' ')])].join(': ')
}
