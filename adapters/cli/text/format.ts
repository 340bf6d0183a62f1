import leven from 'leven'
import { canonicalTimestamp } from '../../../machines/protocol/codec/decode.ts'
import { stateText, TASK_STATES, type TaskState } from '../../../machines/protocol/states.ts'
import { isSwapped } from '../../../runtime/primitives/options.ts'
import { usageError } from '../command.ts'
import { oneLine, plain, shellText, shellWord, type Style, styleText } from './terminal.ts'

/** On a terminal, the maximum width of the columns between the first and the last, in characters. */
const CELL_COLUMNS = 24

/** Rows as aligned lines. Cells are single lines. On a terminal, lines are cut to its width. */
export function tableLines(rows: readonly (readonly string[])[], columns = Infinity): string[] {
  const fitting = rows.map(row =>
    row.map((cell, index) =>
      index === 0 || index === row.length - 1 || columns === Infinity ? cell : cutToWidth(cell, CELL_COLUMNS)
    )
  )
  const widths = fitting.reduce<number[]>(
    (before, row) => row.map((cell, index) => Math.max(before[index] ?? 0, cell.length)),
    []
  )
  return fitting.map(row =>
    cutToWidth(
      row
        .map((cell, index) => cell.padEnd(Number(widths[index])))
        .join('  ')
        .trimEnd(),
      columns
    )
  )
}

/** A titled section of indented lines, after a blank line; nothing without lines. */
export function sectionLines(title: string, lines: readonly string[] = []): string[] {
  return lines.length === 0 ? [] : ['', title, ...lines.map(line => `  ${line}`)]
}

/**
 * A help text in a number of columns. A line that begins an entry or a paragraph is wrapped together with those that go
 * on with it, if one of them is too wide.
 */
export function wrapHelp(text: string, columns: number): string {
  const blocks: string[][] = []
  for (const line of text.split('\n')) {
    const block = blocks.at(-1)
    if (block && goesOn(block, line)) block.push(line)
    else blocks.push([line])
  }
  return blocks
    .flatMap(block => (block.some(({ length }) => length > columns) ? wrap(block, columns) : block))
    .join('\n')
}

/** Whether a line goes on with an entry, at the column of its description, or with a full line of a paragraph. */
function goesOn([first = '', ...more]: readonly string[], line: string): boolean {
  if (/^ {8}/.test(line)) return first !== ''
  return /^\S/.test(first) && /^\S/.test(line) && (more.at(-1) ?? first).length > 80
}

/** The column at which the descriptions of entries begin. */
const DESCRIBED = 18

/**
 * Joins the lines of an entry, of a form of the command, or of a paragraph, and breaks them at spaces. An entry may
 * have a line of its own.
 */
function wrap([first = '', ...more]: readonly string[], columns: number): string[] {
  const isEntry = /^(?: {2}|Usage: )/.test(first)
  const [start = ''] = /^ +(?:\S.*? {2,}(?=\S))?/.exec(first) ?? []
  const isAlone = isEntry && more.length > 0 && start.trim() === ''
  const indent = ' '.repeat(isEntry ? DESCRIBED : 0)
  const lines = isAlone ? [first, indent] : [start]
  const words = [...(isAlone ? [] : [first.slice(start.length)]), ...more.map(line => line.trim())].join(' ').split(' ')
  for (const word of words) {
    const line = lines.at(-1) as string
    if (line === start || line === indent) lines.splice(-1, 1, line + word)
    else if (line.length + 1 + word.length <= columns) lines.splice(-1, 1, `${line} ${word}`)
    else lines.push(indent + word)
  }
  return lines
}

/**
 * Cuts a line to a number of columns, with `…` at the cut. Every character from U+1100, where the wide ones begin,
 * counts two columns. So the result is never too wide, but may be shorter than necessary.
 */
export function cutToWidth(line: string, columns: number): string {
  let width = 0
  let length = 0
  let lengthBeforeDots = 0
  for (const character of line) {
    width += widthOf(character)
    if (width > columns) return `${line.slice(0, lengthBeforeDots)}…`
    length += character.length
    if (width <= columns - widthOf('…')) lengthBeforeDots = length
  }
  return line
}

function widthOf(character: string): number {
  return character < '\u1100' ? 1 : 2
}

const UNITS = { d: 24 * 60 * 60 * 1000, h: 60 * 60 * 1000, m: 60 * 1000, s: 1000 } as const

const LENGTHS = { ...UNITS, ms: 1 } as const

/** A duration in its largest unit: `3d`, `2h`, `5m`, `0s`. */
export function lengthText(ms: number): string {
  const [unit, unitMs] = Object.entries(UNITS).find(([, unitMs]) => ms >= unitMs) ?? ['s', UNITS.s]
  return `${Math.max(0, Math.floor(ms / unitMs))}${unit}`
}

/** Parses the length in an option, as in `30s`, `1m30s` or `500ms`; a bare number is seconds. Gives milliseconds. */
export function readDuration(option: string, text: string): number {
  const seconds = /^\d+(?:\.\d+)?$/.test(text) ? `${text}s` : text
  const parts = [...seconds.matchAll(/(\d{1,9}(?:\.\d{1,9})?)(ms|[dhms])/g)]
  const ms = parts.reduce((sum, [, count, unit]) => sum + Number(count) * LENGTHS[unit as keyof typeof LENGTHS], 0)
  if (parts.map(([part]) => part).join('') === seconds && ms > 0 && ms < 2 ** 31) return ms
  throw usageError(`${option} takes a length such as 30s, 5m or 1h, not ${JSON.stringify(text)}.`)
}

/** A time and its distance from now: `2026-01-02T03:04:05.006Z (5m ago)`. */
export function momentText(atMs: number, nowMs: number): string {
  const distance = atMs > nowMs ? `in ${lengthText(atMs - nowMs)}` : `${lengthText(nowMs - atMs)} ago`
  return `${new Date(atMs).toISOString()} (${distance})`
}

/**
 * Parses the time in an option: an RFC 3339 time, a day, which begins at 0:00 UTC, or a duration before now, as in
 * `2h`. Throws a usage error for anything else.
 */
export function readMoment(option: string, text: string, nowMs: number): string {
  const [, count = '', unit = ''] = /^(\d{1,6})([dhms])$/.exec(text) ?? []
  const length = UNITS[unit as keyof typeof UNITS] as number | undefined
  const day = /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text
  const moment = canonicalTimestamp(length === undefined ? day : new Date(nowMs - Number(count) * length).toISOString())
  if (moment !== undefined) return moment
  throw usageError(
    `${option} takes a time such as 2026-01-31T12:00:00Z, a day such as 2026-01-31, or a length such as 30m, 2h or 7d, not ${JSON.stringify(text)}.`
  )
}

const STYLES: Readonly<Record<string, Style>> = {
  completed: 'green',
  failed: 'red',
  rejected: 'red',
  // Not as a failure: the client wanted the end.
  canceled: 'dim',
  'input-required': 'yellow',
  'auth-required': 'yellow',
  working: 'cyan',
  submitted: 'cyan'
}

/** Colours the state with which a text begins. */
export function paintState(hasColours: boolean, text: string): string {
  return text.replace(/^[a-z]+(?:-required)?(?=$|[ :])/, word =>
    Object.hasOwn(STYLES, word) ? styleText(hasColours, STYLES[word] as Style, word) : word
  )
}

/** Parses the state in an option. Throws a usage error for an unknown one. */
export function readState(option: string, text: string): TaskState {
  const states = Object.keys(TASK_STATES) as TaskState[]
  const state = states.find(state => stateText(state) === text)
  if (state) return state
  throw usageError(`${option} takes ${states.map(stateText).join(', ')}, not ${JSON.stringify(text)}.`)
}

/** The formats of a string in words. */
const FORMATS: ReadonlyMap<unknown, string> = new Map([
  ['date', 'a date, as in 2027-05-01'],
  ['time', 'a time, as in 17:30:00'],
  ['date-time', 'a date and time, as in 2027-05-01T17:30:00Z'],
  ['email', 'an email address'],
  ['uri', 'a URL'],
  ['uuid', 'a UUID']
])

/**
 * Describes a JSON Schema in one line of at most so many columns: `a number from 50`, `one of small, large`, or else
 * the schema itself, cut. The schema is untrusted, so every member is checked.
 */
export function expectedText(schema: Readonly<Record<string, unknown>>, columns: number): string {
  const { $schema: _, ...wanted } = schema
  try {
    return cutToWidth(oneLine(inWords(wanted) ?? JSON.stringify(wanted)), columns)
  } catch {
    return 'a value whose schema is nested too deep to show'
  }
}

/** Describes a simple schema in words. A format makes its pattern redundant. */
function inWords({
  type,
  enum: choices,
  format,
  pattern,
  minimum,
  exclusiveMinimum,
  maximum,
  exclusiveMaximum,
  ...others
}: Record<string, unknown>): string | undefined {
  if (Array.isArray(choices))
    return `one of ${choices.map(choice => (typeof choice === 'string' ? choice : JSON.stringify(choice))).join(', ')}`
  if (Object.keys(others).length > 0) return undefined
  if (type === 'number' || type === 'integer') {
    const bounds = [
      bound('from', minimum),
      bound('above', exclusiveMinimum),
      bound('to', maximum),
      bound('below', exclusiveMaximum)
    ]
    return [type === 'number' ? 'a number' : 'a whole number', ...bounds.flat()].join(' ')
  }
  if (type === 'boolean') return 'true or false'
  if (type !== 'string') return undefined
  return FORMATS.get(format) ?? (format === undefined && pattern === undefined ? 'text' : undefined)
}

/** A numeric bound. Libraries add ±MAX_SAFE_INTEGER to integers, which is left out. */
function bound(word: string, limit: unknown): string[] {
  return typeof limit === 'number' && Math.abs(limit) !== Number.MAX_SAFE_INTEGER ? [`${word} ${limit}`] : []
}

/** One test point of TAP. */
export interface TapPoint {
  readonly name: string
  /** The failure, in lines; `undefined` if the test passed. */
  readonly failure?: string | undefined
  /** Why the test was skipped. */
  readonly skip?: string | undefined
  /** Why a failure does not count. */
  readonly todo?: string | undefined
}

/** The beginning of a TAP 14 text with this number of test points. */
export function tapHead(count: number): string {
  return `TAP version 14\n1..${count}\n`
}

/** A test point, with its number from 1. */
export function tapPoint({ name, failure, skip, todo }: TapPoint, number: number): string {
  const point = `ok ${number} - ${escaped(name)}${directive('skip', skip)}${directive('todo', todo)}`
  const lines =
    failure === undefined
      ? [point]
      : [
          `not ${point}`,
          '  ---',
          '  message: |',
          ...plain(failure)
            .split('\n')
            .map(text => `    ${text}`),
          '  ...'
        ]
  return lines.map(line => `${line}\n`).join('')
}

/** Comments at the end of a TAP text. */
export function tapComments(comments: readonly string[]): string {
  return comments.map(comment => `# ${oneLine(comment)}\n`).join('')
}

function directive(name: 'skip' | 'todo', reason: string | undefined): string {
  return reason === undefined ? '' : ` # ${name.toUpperCase()} ${oneLine(reason)}`
}

/** Escapes the characters that begin a directive or a comment. */
function escaped(text: string): string {
  return oneLine(text).replaceAll(/[\\#]/g, String.raw`\$&`)
}

/** The parts that all command lines share. */
export interface PasteLine {
  readonly url: string
  readonly out?: string | undefined
  /** The bindings to use, unless the card chooses. */
  readonly bindings?: readonly string[] | undefined
  /** The version of A2A to use, unless the card chooses. */
  readonly version?: string | undefined
  /** Other origins that may receive the key. */
  readonly credentialOrigins?: readonly string[] | undefined
  /** The names of headers to send. The line has placeholders for their values. */
  readonly headers?: readonly string[] | undefined
  /** The names of service parameters to send. The line has placeholders for their values. */
  readonly parameters?: readonly string[] | undefined
  /** Whether the agent requires a key. The line then contains a placeholder, never the key. */
  readonly needsKey: boolean
  /** Whether the agent requires a token, in the same way. */
  readonly needsToken?: boolean
}

/** The parts of a `send` command. */
interface SendLine extends PasteLine {
  readonly text: string
  readonly context?: string | undefined
  readonly task?: string | undefined
  readonly reference?: string | undefined
}

/** The parts of a `watch` command. */
interface WatchLine extends PasteLine {
  readonly task: string
}

/** A `send` command to paste into a terminal. */
export function formatSendCommand({ text, context, task, reference, ...place }: SendLine): string {
  const ids = { 'context-id': context, 'task-id': task, reference }
  const options = [...optionsOf(ids), ...placeOptions(place)]
  return ['npx taskchart send', shellWord(place.url), shellText(text), ...options].join(' ')
}

/** A `watch` command to paste into a terminal. */
export function watchLine({ task, ...place }: WatchLine): string {
  const id = shellWord(task)
  const options = placeOptions(place)
  const words = startsWithDash(id) ? [...options, '--', id] : [id, ...options]
  return ['npx taskchart watch', shellWord(place.url), ...words].join(' ')
}

/** A `chat` command to paste into a terminal. It continues the last context of its URL. */
export function chatLine(place: PasteLine): string {
  return ['npx taskchart chat', shellWord(place.url), ...placeOptions(place)].join(' ')
}

function placeOptions(place: PasteLine): string[] {
  const { out, bindings, version, credentialOrigins, headers = [], parameters = [], needsKey, needsToken } = place
  return [
    ...optionsOf({
      out,
      binding: bindings,
      'a2a-version': version,
      'credential-origin': credentialOrigins,
      header: headers.map(name => `${name}: …`),
      'svc-param': parameters.map(name => `${name}: …`)
    }),
    ...(needsKey ? ['--api-key …'] : []),
    ...(needsToken ? ['--bearer …'] : [])
  ]
}

/** A value that starts with a dash is joined to its option by `=`. */
function optionsOf(options: Readonly<Record<string, string | readonly string[] | undefined>>): string[] {
  return Object.entries(options).flatMap(([name, values = []]) =>
    [values].flat().map(value => {
      const word = shellWord(value)
      return startsWithDash(word) ? `--${name}=${word}` : `--${name} ${word}`
    })
  )
}

/** Whether the command would parse a word as an option. The shell removes the quotes first. */
function startsWithDash(word: string): boolean {
  return /^["']?-/.test(word)
}

/**
 * The name that a misspelled word probably means: the nearest one, at most two letters away, one for short words; or
 * the only one that begins so.
 */
function nearestName(word: string, names: readonly string[]): string | undefined {
  const [begun, ...others] = names.filter(name => word.length > 2 && name.startsWith(word))
  if (begun !== undefined && others.length === 0) return begun
  const most = word.replace(/^\W+/, '').length > 4 ? 2 : 1
  const ranked = names.map(name => ({
    name,
    distance: isSwapped(word, name) ? 1 : leven(word, name, { maxDistance: most + 1 })
  }))
  return ranked.filter(({ distance }) => distance <= most).toSorted((a, b) => a.distance - b.distance)[0]?.name
}

/** A hint for an unknown word: the nearest name, or all names. */
export function didYouMean(word: string, names: readonly string[]): string {
  const near = nearestName(word, names)
  return near === undefined ? `There are: ${names.join(', ')}.` : `Did you mean ${near}?`
}
