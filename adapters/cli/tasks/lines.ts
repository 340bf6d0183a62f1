import type { Artifact, ListTasksResponse, Message, Task } from '../../../machines/protocol/objects.ts'
import { stateText } from '../../../machines/protocol/states.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import type { TaskEvent } from '../../../runtime/store/store.ts'
import { readAlias, OUTPUT_OPTIONS, readOptions, readOutput, readPositionals } from '../arguments.ts'
import { EXIT, type Io, usageError } from '../command.ts'
import { artifactParts, sizeOfParts, type Given } from '../talk/artifacts.ts'
import { messageText, shortly } from '../talk/results.ts'
import { cutToWidth, lengthText, momentText, paintState, sectionLines, tableLines } from '../text/format.ts'
import { jsonLine, oneLine, plain, formatBytes } from '../text/terminal.ts'
import {
  FILTER_OPTIONS,
  type FoundTask,
  type Listing,
  readFilters,
  readLimit,
  readPlace,
  SOURCE_OPTIONS,
  type CompleteTask,
  type ShownWebhook,
  withSource
} from './source.ts'

/** The most of a message that is shown, in columns. */
const FIRST_WORDS = 60

const OPTIONS = {
  ...SOURCE_OPTIONS,
  ...FILTER_OPTIONS,
  'context-id': { type: 'string' },
  limit: { type: 'string', default: '50' },
  ...OUTPUT_OPTIONS
} as const

/**
 * `taskchart tasks ls`: lists matching tasks, latest status first. One document of JSON is a ListTasksResponse. A line
 * of JSON has more than the task, unless `isBare`.
 */
export async function printTasks(args: readonly string[], io: Io, isBare = false): Promise<number> {
  const { values, positionals } = readOptions(args, OPTIONS)
  const { place, rest } = readPlace(values, positionals, io.env)
  readPositionals(rest, [])
  const { context: given, 'context-id': id } = values
  const context = readAlias({ context: given, 'context-id': id }, ['context', 'context-id'])
  const form = readOutput(values)
  if (values.version !== undefined && place.agent !== undefined)
    throw usageError('--version is for --db: an agent does not tell which version opened a task.')
  const limit = readLimit(values.limit)
  const nowMs = io.clock.now()
  const filters = readFilters({ ...values, context }, nowMs)
  const report = (message: string) => io.stderr.write(`taskchart: ${oneLine(message)}\n`)
  const listing = await withSource(place, report, io, source => source.newest(filters, limit))
  const { tasks, total } = listing
  const lines = {
    json: () => [jsonLine(responseOf(listing))],
    lines: () => tasks.map(isBare ? ({ task }) => jsonLine(task) : lineOf),
    text: () => table(listing, nowMs, io.screen?.columns).map(line => painted(io.colours.stdout, line))
  }
  for (const line of lines[form]()) io.stdout.write(line)
  if (total !== undefined) io.stderr.write(`The newest ${limit} of ${total} tasks. All of them: --limit ${total}\n`)
  if (tasks.length === 0) io.stderr.write('No tasks match.\n')
  return EXIT.ok
}

function lineOf({ scope, generation, task }: FoundTask): string {
  return jsonLine({ ...scope, generation, task })
}

/** A list without a next page, as A2A has it (§3.1.4). */
function responseOf({ tasks, total = tasks.length }: Listing): ListTasksResponse {
  return { tasks: tasks.map(({ task }) => task), totalSize: total, pageSize: tasks.length, nextPageToken: '' }
}

function table({ tasks, isMixed }: Listing, nowMs: number, columns: number | undefined): string[] {
  if (tasks.length === 0) return []
  const titles = ['TASK', 'STATE', 'AGE', ...(isMixed ? ['TENANT', 'PRINCIPAL'] : []), 'CONTEXT', 'MESSAGE']
  return tableLines([titles, ...tasks.map(found => cells(found, isMixed, nowMs))], columns).map(line => `${line}\n`)
}

/** Colours the second column, the state. */
function painted(hasColours: boolean, line: string): string {
  return line.replace(
    /^(\S+ {2,})([a-z-]+)/,
    (_, before: string, state: string) => `${before}${paintState(hasColours, state)}`
  )
}

function cells({ task, scope }: FoundTask, isMixed: boolean, nowMs: number): string[] {
  const {
    id,
    contextId = '',
    status: { state, timestamp, message }
  } = task
  const age = timestamp === undefined ? '' : lengthText(nowMs - Date.parse(timestamp))
  const whose = isMixed && scope ? [scope.tenant, scope.principal] : []
  const words = message ? cutToWidth(oneLine(messageText(message)), FIRST_WORDS) : ''
  return [id, stateText(state), age, ...whose, contextId, words].map(oneLine)
}

/** The width of a time, in characters. */
const TIME_COLUMNS = '2026-01-02T03:04:05.006Z'.length

/** All details of a task, for people. Text from outside is indented below its heading. */
export function recordLines(record: CompleteTask, nowMs: number): string[] {
  const { history = [], artifacts = [], metadata = {} } = record.task
  return [
    ...factLines(record, nowMs),
    ...sectionLines('Messages', history.flatMap(messageLines)),
    ...sectionLines('Artifacts', artifacts.flatMap(artifactLines)),
    ...sectionLines('Metadata', metadataLines(metadata)),
    ...sectionLines('Events', record.events?.map(eventLine)),
    ...sectionLines('Journal', record.journal?.map(oneLine)),
    ...sectionLines(
      'Webhooks',
      record.webhooks?.map(webhook => webhookLine(webhook, nowMs))
    )
  ]
}

function factLines({ task, scope, generation, events, wakeAtMs, deadlineAtMs }: CompleteTask, nowMs: number): string[] {
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

function messageLines(message: Message): string[] {
  const [first = '', ...others] = messageText(message).split('\n')
  return [`${message.role === 'ROLE_USER' ? 'user' : 'agent'}: ${first}`, ...others.map(line => `  ${line}`)]
}

/** Consecutive chunks are joined where that is possible. */
function artifactLines(artifact: Artifact): string[] {
  const { artifactId, name = artifactId, description, parts } = artifact
  const title = `${oneLine(name)} (${name === artifactId ? '' : `${oneLine(artifactId)}, `}${formatBytes(sizeOfParts(parts))})`
  return [
    description === undefined ? title : `${title}: ${oneLine(description)}`,
    ...artifactParts(artifact, true).map(given => `  ${partLine(given)}`)
  ]
}

function partLine(given: Given): string {
  if ('text' in given) return `text: ${shortly(given)}, ${formatBytes(Buffer.byteLength(given.text))}`
  if ('bytes' in given) return `file: ${shortly(given)}`
  return 'url' in given
    ? `url: ${shortly(given)}: ${oneLine(given.url)}`
    : `data: ${shortly(given)}, ${formatBytes(Buffer.byteLength(JSON.stringify(given.data)))}`
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
  return `artifact ${oneLine(name)} (${append ? 'more, ' : ''}${formatBytes(sizeOfParts(parts))})`
}

/** A webhook in one line: `p1  https://hooks.example  told 3 of 5; given up after 8 tries: HTTP 404`. */
function webhookLine(
  { id, host, told, tries, end, dueAtMs, failure = '', rejected, generation }: ShownWebhook,
  nowMs: number
): string {
  const next = dueAtMs === undefined ? '' : `, the next ${momentText(dueAtMs, nowMs)}`
  const trouble =
    end === 'given up'
      ? `; given up after ${tries} tries: ${failure}`
      : tries > 0
        ? `; tried ${tries} times${next}: ${failure}`
        : ''
  const refused = rejected
    ? `; ${rejected.events} rejected, the newest was ${rejected.generation}: ${rejected.failure}`
    : ''
  return `${oneLine(id)}  ${host}  told ${told} of ${generation}${oneLine(trouble + refused)}`
}
