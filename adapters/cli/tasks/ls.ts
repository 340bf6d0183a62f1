import { stateText } from '../../../machines/protocol/states.ts'
import { readOptions, readPositionals } from '../arguments.ts'
import { EXIT, usageError, type Io } from '../command.ts'
import { messageText } from '../talk/results.ts'
import { cutToWidth, tableLines } from '../text/columns.ts'
import { paintState, readState } from '../text/state-text.ts'
import { jsonLine, oneLine } from '../text/terminal-text.ts'
import { lengthText, readMoment } from '../text/time-text.ts'
import { readPlace, SOURCE_OPTIONS, withSource } from './open-source.ts'
import type { Filters, FoundTask, Listing } from './source.ts'

/** The most of a message that is shown, in columns. */
const FIRST_WORDS = 60

const OPTIONS = {
  ...SOURCE_OPTIONS,
  state: { type: 'string' },
  context: { type: 'string' },
  since: { type: 'string' },
  limit: { type: 'string', default: '50' },
  json: { type: 'boolean' }
} as const

/** `taskchart tasks ls`: lists matching tasks, latest status first. */
export async function listTasks(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = readOptions(args, OPTIONS)
  const { place, rest } = readPlace(values, positionals)
  readPositionals(rest, [])
  const { state, context: contextId, since, json = false } = values
  const limit = readLimit(values.limit)
  const nowMs = io.clock.now()
  const filters: Filters = {
    contextId,
    ...(state !== undefined && { state: readState('--state', state) }),
    ...(since !== undefined && { since: readMoment('--since', since, nowMs) })
  }
  const report = (message: string) => io.stderr.write(`taskchart: ${oneLine(message)}\n`)
  const listing = await withSource(place, report, io, source => source.newest(filters, limit))
  const { tasks, total } = listing
  for (const line of json ? tasks.map(lineOf) : table(listing, nowMs, io.screen?.columns))
    io.stdout.write(json ? line : painted(io.colours.stdout, line))
  if (total !== undefined) io.stderr.write(`The newest ${limit} of ${total} tasks. All of them: --limit ${total}\n`)
  if (tasks.length === 0) io.stderr.write('No tasks match.\n')
  return EXIT.ok
}

function lineOf({ scope, generation, task }: FoundTask): string {
  return jsonLine({ ...scope, generation, task })
}

function readLimit(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw usageError(`--limit takes a number from 1 on, not ${JSON.stringify(text)}.`)
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
