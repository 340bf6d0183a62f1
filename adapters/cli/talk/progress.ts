import type { Artifact, StreamResponse, TaskStatus } from '../../../machines/protocol/objects.ts'
import { answerSchemaOf } from '../../client/answer-schema.ts'
import { expectedText } from '../text/expected.ts'
import { messageText } from '../text/message-text.ts'
import { stateText } from '../text/state-text.ts'
import { oneLine, sizeText } from '../text/terminal-text.ts'
import { bytesIn } from './artifact-parts.ts'
import type { Watched } from './watch-stream.ts'

const EXPECTS = 'expects: '

/**
 * An event of a stream as lines for the user. Later chunks say nothing new, and answers come as results; a task that
 * others have watched before has a line for each artifact that is there. A question has a line of what it expects, if the agent
 * says so, of so many columns.
 */
export function progressLines(event: StreamResponse, columns: number): string[] {
  if ('message' in event) return []
  if ('statusUpdate' in event) return statusLines(event.statusUpdate.status, columns)
  if ('task' in event) {
    const { id, status, artifacts = [] } = event.task
    return [...statusLines(status, columns, ` (task ${oneLine(id)})`), ...artifacts.map(artifactText)]
  }
  const { artifact, append } = event.artifactUpdate
  return append ? [] : [`artifact ${nameOf(artifact)}`]
}

/** What goes on now, in one line: the task's state, how long it has been watched, and the newest that came of it. */
export function liveText({ task, newest, isLost }: Watched, elapsedMs: number): string {
  const state = isLost ? 'connection lost' : task ? stateText(task.state) : 'waiting for the agent'
  return [`${state} (${durationText(elapsedMs)})`, ...(newest === undefined ? [] : [newest])].join(': ')
}

/** An artifact that was there at first, with what it held then. */
function artifactText(artifact: Artifact): string {
  return `artifact ${nameOf(artifact)} (${sizeText(bytesIn(artifact.parts))})`
}

function nameOf({ artifactId, name = artifactId }: Artifact): string {
  return oneLine(name)
}

function statusLines(status: TaskStatus, columns: number, more = ''): string[] {
  const schema = answerSchemaOf(status.message)
  return [`${statusText(status)}${more}`, ...(schema ? [`${EXPECTS}${expectedText(schema, columns - EXPECTS.length)}`] : [])]
}

function statusText({ state, message }: TaskStatus): string {
  return [stateText(state), ...(message ? [messageText(message)] : [])].join(': ')
}

/** `0:07`, `1:02:03`. */
function durationText(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  const last = String(rest).padStart(2, '0')
  return hours === 0 ? `${minutes}:${last}` : `${hours}:${String(minutes).padStart(2, '0')}:${last}`
}
