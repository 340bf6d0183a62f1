import type { Artifact, StreamResponse, TaskStatus } from '../../../machines/protocol/objects.ts'
import { stateText } from '../../../machines/protocol/states.ts'
import { answerSchemaOf } from '../../client/messages.ts'
import { expectedText } from '../text/expected.ts'
import { oneLine, sizeText } from '../text/terminal-text.ts'
import { bytesIn } from './artifact-parts.ts'
import { messageText } from './results.ts'
import type { Watched } from './watch-stream.ts'

const EXPECTS = 'expects: '

/**
 * The lines to print for an event of a stream. An artifact has one line, not one per chunk, and answers are printed as results. The
 * first snapshot of a task that already has artifacts prints a line for each. A question whose message carries an answer
 * schema prints a line about it, cut to `columns`; 0 columns print none.
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

/** The text of the live line: the task's state, how long it has been watched, and the newest event. */
export function liveText({ task, newest, isLost }: Watched, elapsedMs: number): string {
  const state = isLost ? 'connection lost' : task ? stateText(task.state) : 'waiting for the agent'
  return [`${state} (${durationText(elapsedMs)})`, ...(newest === undefined ? [] : [newest])].join(': ')
}

/** An artifact of the first snapshot, with its size. */
function artifactText(artifact: Artifact): string {
  return `artifact ${nameOf(artifact)} (${sizeText(bytesIn(artifact.parts))})`
}

function nameOf({ artifactId, name = artifactId }: Artifact): string {
  return oneLine(name)
}

function statusLines(status: TaskStatus, columns: number, more = ''): string[] {
  const schema = columns > 0 ? answerSchemaOf(status.message) : undefined
  return [`${statusText(status)}${more}`, ...(schema ? [expectsLine(schema, columns)] : [])]
}

/** The line about the schema of an answer: `expects: a number from 50`. */
export function expectsLine(schema: Readonly<Record<string, unknown>>, columns: number): string {
  return `${EXPECTS}${expectedText(schema, columns - EXPECTS.length)}`
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
