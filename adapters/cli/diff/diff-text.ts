import { mergedChart } from '../../drawing/merged-chart.ts'
import { mermaidOf } from '../../drawing/mermaid.ts'
import type { AgentDiff, ChartDiff } from '../../testing/diff/agent-diff.ts'
import type { Change } from '../../testing/diff/chart-changes.ts'
import type { ChangedCode, ConfigurationVerdict, ChangeVerdict } from '../../testing/diff/verdicts.ts'
import { statePaths } from '../test/prove.ts'
import { jsonLine, oneLine, styleText, type Style } from '../text/terminal.ts'

/** The colours of verdicts. */
export const VERDICT_COLOURS: Readonly<Record<ChangeVerdict, Style>> = {
  same: 'green',
  otherwise: 'yellow',
  'other answer': 'yellow',
  depends: 'yellow',
  unknown: 'yellow',
  'never ends': 'red',
  'not restored': 'red'
}

const SIGNS: Readonly<Record<Change['change'], string>> = { added: '+', removed: '-', renamed: '~', changed: '~' }

/** A source in one line is cut after this many characters. */
const LONGEST_SOURCE = 110

/** A comparison in words. */
export function diffText(diff: AgentDiff, hasColours: boolean): string {
  const lines = [
    `Version ${oneLine(diff.versions.before)} before, ${oneLine(diff.versions.after)} now`,
    ...diff.compared.map(what => `compared  ${oneLine(what)}`),
    ...diff.notSeen.map(what => `not seen  ${oneLine(what)}`),
    ...(diff.changes.length > 0 ? ['', ...diff.changes.flatMap(changeLines)] : []),
    ...diff.charts.flatMap(chart => ['', ...chartLines(chart, hasColours)]),
    ...(diff.work
      ? ['', verdictLine('every task', diff.work.verdict, diff.work.reasons, hasColours, 'every task'.length)]
      : [])
  ]
  return `${lines.join('\n')}\n`
}

function chartLines({ chart, changes, configurations }: ChartDiff, hasColours: boolean): string[] {
  const names = configurations.map(placeText)
  const width = Math.max(...names.map(name => name.length))
  return [
    titleOf(chart),
    ...(changes.length === 0 ? ['  no changes'] : changes.flatMap(changeLines)),
    'Tasks in',
    ...configurations.flatMap((one, i) => [
      verdictLine(String(names[i]), one.verdict, detailsOf(one), hasColours, width)
    ])
  ]
}

function titleOf(chart: string): string {
  return chart === 'work' ? 'The work' : `The actor ${oneLine(chart.replace(/^child:/, ''))}`
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
  verdict: ChangeVerdict,
  details: readonly string[],
  hasColours: boolean,
  width: number
): string {
  const [first = '', ...others] = details.map(oneLine)
  const mark = styleText(hasColours, VERDICT_COLOURS[verdict], verdict.padEnd('not restored'.length))
  const indent = ' '.repeat(2 + width + 2 + 'not restored'.length + 2)
  return [`  ${name.padEnd(width)}  ${mark}  ${first}`.trimEnd(), ...others.map(line => `${indent}${line}`)].join('\n')
}

/** A configuration: its state, and where its history leads. */
function placeText({ state, history = {} }: ConfigurationVerdict): string {
  const leads = Object.entries(history).map(([id, states]) => `${id}: ${states.join(', ')}`)
  return oneLine(`${statePaths(state)}${leads.length === 0 ? '' : ` (history ${leads.join('; ')})`}`)
}

function detailsOf({ reasons, endings, depends }: ConfigurationVerdict): string[] {
  return [
    ...reasons,
    ...(endings.added.length > 0 ? [`new endings: ${endings.added.join(', ')}`] : []),
    ...(endings.removed.length > 0 ? [`endings that are gone: ${endings.removed.join(', ')}`] : []),
    ...depends.flatMap(dependsLines)
  ]
}

function dependsLines({ says, ways }: ChangedCode): string[] {
  if (!ways) return [`depends on ${says}`]
  const list = (endings: readonly string[]) => (endings.length === 0 ? 'no end' : endings.join(', '))
  return [
    `depends on ${says}`,
    ...ways.places.map(place => `  ${place}`),
    `  if it always holds: ${list(ways.holds)}; if it never does: ${list(ways.fails)}`
  ]
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
    `### ${markdownText(titleOf(chart.chart))}`,
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
