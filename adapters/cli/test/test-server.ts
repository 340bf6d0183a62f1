import type { RequirementResult } from '../../conformance/requirements/ledger.ts'
import type { Column, ServerTestOptions } from '../../conformance/server-tests.ts'
import { refusePassword } from '../arguments.ts'
import { CommandError, EXIT, usageError, type Io } from '../command.ts'
import { aboutKey, inOptions, readAccess, type AccessValues } from '../talk/agent-connection.ts'
import { tableLines, tapComments, tapHead, tapPoint, type TapPoint } from '../text/format.ts'
import { counter } from '../text/live-line.ts'
import { oneLine, plain, styleText } from '../text/terminal.ts'

/** The options for the test of a server. */
export interface ServerTestFlags extends AccessValues {
  readonly text?: readonly string[] | undefined
  readonly binding?: readonly string[] | undefined
  readonly wait?: string | undefined
  readonly only?: string | undefined
  readonly tap?: boolean | undefined
}

/** A verdict and its binding. */
interface BindingVerdict {
  readonly verdict: RequirementResult
  readonly column: Pick<Column, 'binding'>
}

/** Tests an A2A server at a URL, and writes the report. Resolves with the exit code. */
export async function testServerCommand(url: string, flags: ServerTestFlags, io: Io): Promise<number> {
  const { only = '', tap } = flags
  refusePassword(url)
  const { columns, notes } = await tested(url, flags, io)
  const all = columns.flatMap(column => column.verdicts.map(verdict => ({ verdict, column })))
  const chosen = all.filter(one => nameOf(one).includes(only))
  if (chosen.length === 0) throw new CommandError(`No requirement's name contains ${JSON.stringify(only)}.`)
  io.stdout.write(tap ? tapText(chosen, notes) : plain(report(columns, chosen, notes, io)))
  return chosen.some(({ verdict }) => verdict.outcome === 'failed') ? EXIT.unsuccessful : EXIT.ok
}

/** Runs the test. Violations are written as they are found, except for TAP. */
async function tested(
  url: string,
  flags: ServerTestFlags,
  { stdout, stderr, terminal, clock, signal, colours, env }: Io
) {
  const access = readAccess(flags, env)
  let now = 'asking for the card'
  let moves = 0
  const failed = new Set<number>()
  const line = counter({
    output: stderr,
    terminal,
    clock,
    text: () => oneLine(`${moves} moves${failed.size === 0 ? '' : `, ${failed.size} failed`}: ${now}`)
  })
  const options: ServerTestOptions = {
    clock,
    signal,
    onMove: (binding, what) => {
      moves += 1
      now = `${binding}, ${what}`
    },
    missed: (binding, verdict) => {
      if (verdict.outcome === 'failed') failed.add(verdict.requirement.id)
      const one = { verdict, column: { binding } }
      if (flags.tap || !nameOf(one).includes(flags.only ?? '')) return
      line.erase()
      stdout.write(missText(one, colours.stdout))
    },
    ...(flags.text && { texts: flags.text }),
    ...(flags.binding && { bindings: flags.binding }),
    ...access,
    ...(flags.wait !== undefined && { bounds: { answerMs: readWait(flags.wait) } })
  }
  try {
    const { testServer } = await import('../../conformance/server-tests.ts')
    return await testServer(url, options).catch((error: unknown) => {
      signal.throwIfAborted()
      throw error instanceof TypeError ? usageError(error.message) : aboutKey(error, { url, access })
    })
  } finally {
    line.end()
  }
}

/** Converts seconds to milliseconds. Throws a usage error. */
function readWait(text: string): number {
  const seconds = Number(text)
  if (text.trim() !== '' && seconds > 0 && seconds <= 3600) return seconds * 1000
  throw usageError('--wait takes a number of seconds, 3600 at most.')
}

const LEVELS = { M: 'MUST', S: 'SHOULD', 'M/S': 'MUST', D: 'open in A2A' } as const
const OUTCOMES = { passed: 'ok', failed: 'FAIL', warning: 'warn', skipped: '-' } as const

function nameOf({
  verdict: {
    requirement: { id, says }
  },
  column: { binding }
}: BindingVerdict): string {
  return `${binding}: ${id} ${says}`
}

function tapText(verdicts: readonly BindingVerdict[], notes: readonly string[]): string {
  return [
    tapHead(verdicts.length),
    ...verdicts.map((one, i) => tapPoint(pointOf(one), i + 1)),
    tapComments(notes)
  ].join('')
}

function pointOf(result: BindingVerdict): TapPoint {
  const { outcome, reason } = result.verdict
  const isMissed = outcome === 'failed' || outcome === 'warning'
  return {
    name: nameOf(result),
    failure: isMissed ? findingText(result.verdict) : undefined,
    skip: reason && inOptions(reason),
    todo: outcome === 'warning' ? weightOf(result) : undefined
  }
}

/** The weight of a finding. A warning is about a SHOULD, even if its requirement also has a MUST. */
function weightOf({
  verdict: {
    outcome,
    requirement: { level }
  }
}: BindingVerdict): string {
  return outcome === 'warning' && level !== 'D' ? 'SHOULD' : LEVELS[level]
}

function findingText({ findings }: RequirementResult): string {
  return findings
    .map(({ sent, wanted, found }) => `sent:   ${short(sent)}\nwanted: ${short(wanted)}\nfound:  ${short(found)}`)
    .join('\n\n')
}

/** The maximum length of a line of a finding. */
const LONGEST = 1000

function short(text: string): string {
  const line = oneLine(text)
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line
}

function report(
  columns: readonly Column[],
  verdicts: readonly BindingVerdict[],
  notes: readonly string[],
  { screen }: Io
): string {
  return [
    ...requirementLines(columns, verdicts, screen?.columns),
    '',
    ...skipLines(columns, verdicts),
    ...notes.map(oneLine),
    ...countLines(columns, verdicts),
    ''
  ].join('\n')
}

/** A violation: the requirement, and what was sent, wanted and found. */
function missText(result: BindingVerdict, hasColours: boolean): string {
  const {
    outcome,
    requirement: { section }
  } = result.verdict
  const mark = outcome === 'failed' ? styleText(hasColours, 'red', 'FAIL') : styleText(hasColours, 'yellow', 'warn')
  return `${mark} ${oneLine(nameOf(result))} (${weightOf(result)}, §${section})\n${plain(findingText(result.verdict)).replaceAll(/^(?=.)/gm, '  ')}\n\n`
}

/** A line for each requirement that was tried, with a cell for each binding. */
function requirementLines(columns: readonly Column[], verdicts: readonly BindingVerdict[], width?: number): string[] {
  const rows = [...collected(verdicts, ({ verdict }) => verdict.requirement)]
  const lines = rows
    .filter(([, row]) => row.some(({ verdict }) => verdict.outcome !== 'skipped'))
    .map(([{ id, says }, row]) => {
      const cells = columns.map(
        column => OUTCOMES[row.find(one => one.column === column)?.verdict.outcome ?? 'skipped']
      )
      return [String(id), ...cells, says]
    })
  return tableLines([['', ...columns.map(({ binding }) => binding), ''], ...lines], width)
}

/** Groups items by key, in the order in which the keys appear. */
function collected<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>()
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item])
  return groups
}

/** Each skip reason with its requirements. Bindings with the same reasons share a line. */
function skipLines(columns: readonly Column[], verdicts: readonly BindingVerdict[]): string[] {
  const lines = columns.flatMap(column => {
    const skipped = verdicts.flatMap(one =>
      one.column === column && one.verdict.reason !== undefined
        ? [{ id: one.verdict.requirement.id, reason: one.verdict.reason }]
        : []
    )
    const reasons = [...collected(skipped, ({ reason }) => reason)]
    return reasons.map(([reason, same]) => ({
      binding: column.binding,
      text: `${oneLine(inOptions(reason))}: ${same.map(({ id }) => id).join(', ')}`
    }))
  })
  return [...collected(lines, ({ text }) => text)].map(
    ([text, same]) => `not tried over ${same.map(({ binding }) => binding).join(', ')}: ${text}`
  )
}

function countLines(columns: readonly Column[], verdicts: readonly BindingVerdict[]): string[] {
  const count = (column: Column, outcome: RequirementResult['outcome']) =>
    String(verdicts.filter(one => one.column === column && one.verdict.outcome === outcome).length)
  return [
    '',
    ...tableLines([
      ['', 'passed', 'failed', 'warnings', 'skipped', ''],
      ...columns.map(column => [
        column.binding,
        count(column, 'passed'),
        count(column, 'failed'),
        count(column, 'warning'),
        count(column, 'skipped'),
        oneLine(column.url)
      ])
    ])
  ]
}
