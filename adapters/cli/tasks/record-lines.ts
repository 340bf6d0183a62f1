import type { Artifact, Task } from '../../../machines/protocol/objects.ts'
import type { Message } from '../../../machines/protocol/parts.ts'
import { stateText } from '../../../machines/protocol/states.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import type { TaskEvent } from '../../../runtime/store/store.ts'
import { artifactParts, bytesIn, type Given } from '../talk/artifact-parts.ts'
import { messageText, shortly } from '../talk/results.ts'
import { oneLine, plain, sizeText } from '../text/terminal-text.ts'
import { momentText } from '../text/time-text.ts'
import type { TaskRecord } from './source.ts'
import { webhookLine } from './webhook-lines.ts'

/** The width of a time, in characters. */
const TIME_COLUMNS = '2026-01-02T03:04:05.006Z'.length

/** Everything that is known about a task, for people. Text from outside stays indented below its heading. */
export function recordLines(record: TaskRecord, nowMs: number): string[] {
  const { history = [], artifacts = [], metadata = {} } = record.task
  return [
    ...factLines(record, nowMs),
    ...section('Messages', history.flatMap(messageLines)),
    ...section('Artifacts', artifacts.flatMap(artifactLines)),
    ...section('Metadata', metadataLines(metadata)),
    ...section('Events', record.events?.map(eventLine)),
    ...section('Journal', record.journal?.map(oneLine)),
    ...section(
      'Webhooks',
      record.webhooks?.map(webhook => webhookLine(webhook, nowMs))
    )
  ]
}

function factLines({ task, scope, generation, events, wakeAtMs, deadlineAtMs }: TaskRecord, nowMs: number): string[] {
  const {
    id,
    contextId,
    status: { state, message, timestamp }
  } = task
  const moment = (atMs: number | undefined) => (atMs === undefined ? undefined : momentText(atMs, nowMs))
  const began = events?.[0]?.update
  const facts = {
    task: id,
    context: contextId,
    tenant: scope?.tenant === '' ? undefined : scope?.tenant,
    principal: scope?.principal,
    state: message ? `${stateText(state)}: ${messageText(message)}` : stateText(state),
    since: moment(msOf(timestamp)),
    began: moment(began && 'statusUpdate' in began ? msOf(began.statusUpdate.status.timestamp) : undefined),
    generation: generation === undefined ? undefined : String(generation),
    wakes: wakeAtMs === 0 ? 'at once: its work is running' : moment(wakeAtMs),
    deadline: moment(deadlineAtMs)
  }
  return Object.entries(facts).flatMap(([name, fact]) =>
    fact === undefined ? [] : [`${name.padEnd(10)}  ${oneLine(fact)}`]
  )
}

function msOf(timestamp: string | undefined): number | undefined {
  return timestamp === undefined ? undefined : Date.parse(timestamp)
}

function section(title: string, lines: readonly string[] = []): string[] {
  return lines.length === 0 ? [] : ['', title, ...lines.map(line => `  ${line}`)]
}

function messageLines(message: Message): string[] {
  const [first = '', ...others] = messageText(message).split('\n')
  return [`${message.role === 'ROLE_USER' ? 'user' : 'agent'}: ${first}`, ...others.map(line => `  ${line}`)]
}

/** Consecutive chunks are joined where that is possible. */
function artifactLines(artifact: Artifact): string[] {
  const { artifactId, name = artifactId, description, parts } = artifact
  const title = `${oneLine(name)} (${name === artifactId ? '' : `${oneLine(artifactId)}, `}${sizeText(bytesIn(parts))})`
  return [
    description === undefined ? title : `${title}: ${oneLine(description)}`,
    ...artifactParts(artifact, true).map(given => `  ${partLine(given)}`)
  ]
}

function partLine(given: Given): string {
  if ('text' in given) return `text: ${shortly(given)}, ${sizeText(Buffer.byteLength(given.text))}`
  if ('bytes' in given) return `file: ${shortly(given)}`
  return 'url' in given
    ? `url: ${shortly(given)}: ${oneLine(given.url)}`
    : `data: ${shortly(given)}, ${sizeText(Buffer.byteLength(JSON.stringify(given.data)))}`
}

/** Without the generation, which has its own line. */
function metadataLines(metadata: NonNullable<Task['metadata']>): string[] {
  return Object.entries(metadata).flatMap(([key, value]) =>
    key === RELIABILITY_EXTENSION ? [] : [`${oneLine(key)}: ${plain(JSON.stringify(value))}`]
  )
}

/** Only status updates have a time. */
function eventLine({ generation, update }: TaskEvent): string {
  const time = 'statusUpdate' in update ? update.statusUpdate.status.timestamp : undefined
  const what = 'statusUpdate' in update ? statusLine(update.statusUpdate.status) : chunkLine(update.artifactUpdate)
  return `${String(generation).padStart(4)}  ${(time ?? '').padEnd(TIME_COLUMNS)}  ${what}`
}

function statusLine({ state, message }: Task['status']): string {
  return message ? `${stateText(state)}: ${oneLine(messageText(message))}` : stateText(state)
}

function chunkLine({
  artifact: { artifactId, name = artifactId, parts },
  append
}: Extract<TaskEvent['update'], { artifactUpdate: unknown }>['artifactUpdate']): string {
  return `artifact ${oneLine(name)} (${append ? 'more, ' : ''}${sizeText(bytesIn(parts))})`
}
