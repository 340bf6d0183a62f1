import { mergedChart } from '../../drawing/merged-chart.ts'
import { mermaidOf } from '../../drawing/mermaid.ts'
import type { AgentDiff, ChartDiff } from '../../testing/diff/agent-diff.ts'
import type { Change } from '../../testing/diff/chart-changes.ts'
import type { DefinitionDiff, StoredDiff, StoredGroup } from '../../testing/diff/stored-diff.ts'
import { chartTitle, detailsOf, openTasksText, placeText } from '../../testing/diff/verdict-words.ts'
import type { ConfigurationVerdict, StoredVerdict } from '../../testing/diff/verdicts.ts'
import { jsonLine, oneLine, styleText, type Style } from '../text/terminal.ts'

/** The colours of verdicts. */
export const VERDICT_COLOURS: Readonly<Record<StoredVerdict, Style>> = {
  same: 'green',
  otherwise: 'yellow',
  'other answer': 'yellow',
  depends: 'yellow',
  unknown: 'yellow',
  'not compared': 'yellow',
  'never ends': 'red',
  'not restored': 'red'
}

const SIGNS: Readonly<Record<Change['change'], string>> = { added: '+', removed: '-', renamed: '~', changed: '~' }

const VERDICT_WIDTH = 'not restored'.length

/** A source in one line is cut after this many characters. */
const LONGEST_SOURCE = 110

/** A comparison in words. */
export function diffText(diff: AgentDiff, hasColours: boolean): string {
  const lines = [
    ...headLines(diff),
    ...diff.charts.flatMap(chart => ['', ...chartLines(chart, hasColours)]),
    ...(diff.work
      ? ['', verdictLine('every task', diff.work.verdict, diff.work.reasons, hasColours, 'every task'.length)]
      : [])
  ]
  return `${lines.join('\n')}\n`
}

function headLines(diff: AgentDiff): string[] {
  return [
    `Version ${oneLine(diff.versions.before)} before, ${oneLine(diff.versions.after)} now`,
    ...diff.compared.map(what => `compared  ${oneLine(what)}`),
    ...diff.notSeen.map(what => `not seen  ${oneLine(what)}`),
    ...(diff.changes.length > 0 ? ['', ...diff.changes.flatMap(changeLines)] : [])
  ]
}

function chartLines({ chart, changes, configurations }: ChartDiff, hasColours: boolean): string[] {
  const names = configurations.map(placeLine)
  const width = Math.max(...names.map(name => name.length))
  return [
    ...changedLines({ chart, changes }),
    'Tasks in',
    ...configurations.flatMap((one, i) => [
      verdictLine(String(names[i]), one.verdict, detailsOf(one), hasColours, width)
    ])
  ]
}

function changedLines({ chart, changes }: Pick<ChartDiff, 'chart' | 'changes'>): string[] {
  return [oneLine(chartTitle(chart)), ...(changes.length === 0 ? ['  no changes'] : changes.flatMap(changeLines))]
}

function changeLines({ change, says, before, after, part }: Change): string[] {
  const sources = part === 'code' ? [`      before  ${cut(before)}`, `      now     ${cut(after)}`] : []
  return [`  ${SIGNS[change]} ${oneLine(says)}`, ...sources]
}

function cut(text = ''): string {
  const line = oneLine(text)
  return line.length > LONGEST_SOURCE ? `${line.slice(0, LONGEST_SOURCE)}…` : line
}

function verdictLine(
  name: string,
  verdict: StoredVerdict,
  details: readonly string[],
  hasColours: boolean,
  width: number
): string {
  const [first = '', ...others] = details.map(oneLine)
  const mark = styleText(hasColours, VERDICT_COLOURS[verdict], verdict.padEnd(VERDICT_WIDTH))
  const indent = ' '.repeat(2 + width + 2 + VERDICT_WIDTH + 2)
  return [`  ${name.padEnd(width)}  ${mark}  ${first}`.trimEnd(), ...others.map(line => `${indent}${line}`)].join('\n')
}

/** A configuration in one line. */
function placeLine(place: Pick<ConfigurationVerdict, 'state' | 'history'>): string {
  return oneLine(placeText(place))
}

/** A comparison as one JSON document. */
export function diffJson({ charts, ...diff }: AgentDiff): string {
  return jsonLine({
    ...diff,
    charts: charts.map(({ chart, changes, configurations }) => ({ chart, changes, configurations }))
  })
}

/** A comparison as Markdown, for a comment on a pull request. */
export function diffMarkdown(diff: AgentDiff): string {
  const list = (changes: readonly Change[]) => changes.map(({ change, says }) => `- ${change}: ${markdownText(says)}`)
  const sections = diff.charts.flatMap(chart => [
    `### ${markdownText(chartTitle(chart.chart))}`,
    '',
    ...(chart.changes.length === 0 ? ['No changes.'] : list(chart.changes)),
    '',
    '| Tasks in | Verdict | Why |',
    '| --- | --- | --- |',
    ...chart.configurations.map(
      one =>
        `| ${markdownText(placeText(one))} | ${one.verdict} | ${detailsOf(one)
          .map(line => markdownText(line.trim()))
          .join('<br>')} |`
    ),
    '',
    '```mermaid',
    mermaidOf(mergedChart(chart.before, chart.after, chart.marks)).trimEnd(),
    '```',
    ''
  ])
  const lines = [
    '## What this change means for open tasks',
    '',
    `Version ${markdownText(diff.versions.before)} before, ${markdownText(diff.versions.after)} now.`,
    `Compared: ${markdownText(diff.compared.join('; '))}. Not seen: ${markdownText(diff.notSeen.join(', '))}.`,
    '',
    ...(diff.changes.length > 0 ? [...list(diff.changes), ''] : []),
    ...sections,
    ...(diff.work
      ? [`Every task: **${diff.work.verdict}**. ${markdownText(diff.work.reasons.join('; '))}`.trimEnd(), '']
      : [])
  ]
  return lines.join('\n')
}

/** Text in one line that Markdown shows as it is, also in a table. */
function markdownText(text: string): string {
  return oneLine(text).replaceAll(/[\\`*_{}[\]<>#|~&]/g, String.raw`\$&`)
}

/** The open tasks of a store, compared, in words. */
export function storedDiffText({ version, tasks, definitions }: StoredDiff, hasColours: boolean): string {
  const lines = [
    `${openTasksText(tasks)}, version ${oneLine(version)} now`,
    ...definitions.flatMap(one => ['', ...definitionLines(one, hasColours)])
  ]
  return `${lines.join('\n')}\n`
}

function definitionLines(one: DefinitionDiff, hasColours: boolean): string[] {
  const names = one.groups.map(placeLine)
  const width = Math.max(...names.map(name => name.length))
  return [
    definitionTitle(one),
    ...(one.problem === undefined ? [] : [oneLine(one.problem)]),
    ...(one.diff ? headLines(one.diff).slice(1) : []),
    ...(one.diff?.charts ?? []).flatMap(chart => ['', ...changedLines(chart)]),
    'Tasks in',
    ...one.groups.map((group, i) =>
      verdictLine(String(names[i]), group.verdict, [...detailsOf(group), idsText(group)], hasColours, width)
    )
  ]
}

/** The title of a definition, with the number of its tasks. */
export function definitionTitle({ version, digest, tasks }: DefinitionDiff): string {
  const by = version === undefined ? 'no version' : `version ${oneLine(version)}`
  return `${openTasksText(tasks)} stored by ${by}${digest === undefined ? '' : `, definition ${digest}`}`
}

/** The maximum number of ids in a line. */
const SHOWN_IDS = 3

/** How many tasks a group has, and which: `2 tasks: t1, t2`. */
export function idsText({ tasks, ids }: Pick<StoredGroup, 'tasks' | 'ids'>): string {
  const shown = ids.slice(0, SHOWN_IDS).map(oneLine).join(', ')
  const more = tasks > SHOWN_IDS ? `, and ${tasks - SHOWN_IDS} more` : ''
  return `${tasks === 1 ? '1 task' : `${tasks} tasks`}: ${shown}${more}`
}

/** The open tasks of a store, compared, as one JSON document. */
export function storedDiffJson({ definitions, ...diff }: StoredDiff): string {
  return jsonLine({
    ...diff,
    definitions: definitions.map(({ diff: compared, ...one }) => ({
      ...one,
      ...(compared && {
        diff: { ...compared, charts: compared.charts.map(({ chart, changes }) => ({ chart, changes })) }
      })
    }))
  })
}

/** The open tasks of a store, compared, as Markdown. */
export function storedDiffMarkdown({ version, tasks, definitions }: StoredDiff): string {
  const lines = [
    '## What this change means for the open tasks',
    '',
    `${openTasksText(tasks)}, version ${markdownText(version)} now.`,
    '',
    ...definitions.flatMap(one => [
      `### ${markdownText(definitionTitle(one))}`,
      '',
      ...(one.problem === undefined ? [] : [markdownText(one.problem), '']),
      ...(one.diff
        ? [
            `Compared: ${markdownText(one.diff.compared.join('; '))}. Not seen: ${markdownText(one.diff.notSeen.join(', '))}.`,
            ''
          ]
        : []),
      ...changeList([...(one.diff?.changes ?? []), ...(one.diff?.charts ?? []).flatMap(({ changes }) => changes)]),
      '| Tasks in | Verdict | Tasks | Why |',
      '| --- | --- | --- | --- |',
      ...one.groups.map(
        group =>
          `| ${markdownText(placeText(group))} | ${group.verdict} | ${markdownText(idsText(group))} | ${detailsOf(group)
            .map(line => markdownText(line.trim()))
            .join('<br>')} |`
      ),
      ''
    ])
  ]
  return lines.join('\n')
}

function changeList(changes: readonly Change[]): string[] {
  return changes.length === 0 ? [] : [...changes.map(({ change, says }) => `- ${change}: ${markdownText(says)}`), '']
}
