import { type Offer, offerIn } from '../../../machines/protocol/negotiation.ts'
import type { Artifact, Message, StreamResponse, TaskStatus } from '../../../machines/protocol/objects.ts'
import { stateText, type TaskState } from '../../../machines/protocol/states.ts'
import { answerSchemaOf } from '../../client/messages.ts'
import type { Io } from '../command.ts'
import { expectedText, lengthText } from '../text/format.ts'
import { oneLine, plain, formatBytes } from '../text/terminal.ts'
import { sizeOfParts, type Given, messageParts, saveGiven } from './artifacts.ts'

interface ResultOptions {
  /** The folder for files. Without it, only their names are printed. */
  readonly out: string | undefined
  /** Whether text is saved as well as printed: true for artifacts, false for messages. */
  readonly savesText: boolean
  /** Whether stdout is for JSON only. Then files are saved and nothing is printed. */
  readonly json: boolean
}

/** Prints results, and saves the files among them. URLs are printed, never fetched. */
export async function showResults(
  results: readonly Given[],
  { out, savesText, json }: ResultOptions,
  io: Io
): Promise<void> {
  for (const given of results) {
    const isSaved = out !== undefined && !('url' in given) && (savesText || !('text' in given))
    const path = isSaved ? await saveGiven(given, out, io.cwd) : undefined
    if (!json && !('bytes' in given)) io.stdout.write(`${printed(given, io.clock.now())}\n`)
    if (path !== undefined) (json ? io.stderr : io.stdout).write(`saved ${oneLine(path)}${about(given)}\n`)
    else if (!json && 'bytes' in given)
      io.stdout.write(`${oneLine(given.name)}${about(given)}, not saved: add --out DIR to save files\n`)
  }
}

/** A short description of a result that is not text: `picture.png (image/png, 45.1 kB)`. */
export function shortly(given: Given): string {
  return `${oneLine(given.name)}${about(given)}`
}

function printed(given: Exclude<Given, { bytes: Uint8Array }>, nowMs: number): string {
  if ('text' in given) return plain(given.text)
  if ('url' in given) return `${shortly(given)}: ${oneLine(given.url)}`
  const offer = offerIn({ parts: [{ data: given.data }] })
  return offer ? offerText(offer, nowMs) : plain(JSON.stringify(given.data, null, 2))
}

function about(given: Given): string {
  const facts = [
    ...(given.mediaType === undefined ? [] : [oneLine(given.mediaType)]),
    ...('bytes' in given ? [formatBytes(given.bytes.length)] : [])
  ]
  return facts.length === 0 ? '' : ` (${facts.join(', ')})`
}

/** An offer in one line, with its terms and remaining time: `Offer: euros 40, day friday (stands for 10m)`. */
function offerText({ terms, expiresAt }: Offer, nowMs: number): string {
  const named = Object.entries(terms).map(
    ([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`
  )
  const leftMs = Date.parse(expiresAt) - nowMs
  return oneLine(
    `Offer: ${named.join(', ')} (${leftMs > 0 ? `stands for ${lengthText(Math.ceil(leftMs / 1000) * 1000)}` : 'has expired'})`
  )
}

/**
 * A message as text. Files are named only. Data is left out if there is text, since it is for programs; without a name
 * it is one line of JSON.
 */
export function messageText(message: Message): string {
  const hasText = message.parts.some(part => 'text' in part)
  const shown = messageParts(message).filter(given => !hasText || !('data' in given))
  return shown
    .map(given =>
      'text' in given
        ? plain(given.text)
        : 'data' in given && given.filename === undefined
          ? oneLine(JSON.stringify(given.data))
          : shortly(given)
    )
    .join(' ')
}

const EXPECTS = 'expects: '

/**
 * The lines to print for an event of a stream. An artifact has one line, not one per chunk, and answers are printed as
 * results. The first snapshot of a task that already has artifacts prints a line for each. A question whose message
 * carries an answer schema prints a line about it, cut to `columns`; 0 columns print none.
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
export function liveText({ task, newest, isLost }: StreamedEvents, elapsedMs: number): string {
  const state = isLost ? 'connection lost' : task ? stateText(task.state) : 'waiting for the agent'
  return [`${state} (${durationText(elapsedMs)})`, ...(newest === undefined ? [] : [newest])].join(': ')
}

/** An artifact of the first snapshot, with its size. */
function artifactText(artifact: Artifact): string {
  return `artifact ${nameOf(artifact)} (${formatBytes(sizeOfParts(artifact.parts))})`
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

/** The events of a stream so far. */
export interface StreamedEvents {
  contextId?: string | undefined
  /** The task as of the last event, if the agent opened one. */
  task?: { readonly id: string; readonly state: TaskState }
  /** The agent's message with the newest status: the question of a task that waits. */
  question?: Message | undefined
  /** The answer, if the agent opened no task. */
  message?: Message
  /** The task's artifacts, by their ids. */
  artifacts: Map<string, ArtifactProgress>
  /** The agent's last message or artifact in this state, in one line. */
  newest?: string | undefined
  isLost: boolean
}

/** How much of an artifact has arrived. */
export interface ArtifactProgress {
  readonly name: string
  /** The number of chunks. An artifact of the first snapshot counts its parts, since its chunks are unknown. */
  readonly chunks: number
  readonly bytes: number
}
