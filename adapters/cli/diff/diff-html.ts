import { drawPair } from '../../drawing/chart-drawing.ts'
import { html, plainText } from '../../inspector/story/story-parts.ts'
import type { AgentDiff, ChartDiff } from '../../testing/diff/agent-diff.ts'
import type { Change } from '../../testing/diff/chart-changes.ts'
import type { DefinitionDiff, StoredDiff, StoredGroup } from '../../testing/diff/stored-diff.ts'
import { chartTitle, detailsOf, openTasksText, placeText, activeStateIds } from '../../testing/diff/verdict-words.ts'
import type { ConfigurationVerdict, StoredVerdict } from '../../testing/diff/verdicts.ts'
import { definitionTitle, idsText, VERDICT_COLOURS } from './diff-text.ts'

/** Nothing is loaded, and nothing runs. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

const STYLE = `
:root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif;--line:light-dark(#d0d7de,#3d444d)}
body{margin:0 auto;max-width:1600px;padding:16px;overflow-wrap:anywhere}
h1{font-size:22px;margin:0 0 4px}h2{font-size:18px;margin:28px 0 8px}h3{font-size:15px;margin:0 0 4px}
.quiet{color:light-dark(#59636e,#9ba3ad)}
.pair{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:16px;margin:12px 0}
.pair>section{overflow:auto;min-width:0;padding:8px;border:1px solid var(--line);border-radius:8px}
.pair svg{display:block;max-width:100%;height:auto}
@media(width < 1100px){.pair{grid-template-columns:minmax(0,1fr)}}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%}
td,th{text-align:left;vertical-align:top;padding:4px 8px;border-bottom:1px solid var(--line)}
td{overflow-wrap:break-word}td:nth-child(2){white-space:nowrap}
ul{margin:4px 0;padding-left:22px}td ul{padding-left:16px}td li{white-space:pre-wrap}
pre{margin:2px 0;font-size:13px;white-space:pre-wrap}
b.green,.added::marker{color:light-dark(#1a7f37,#3fb950)}
b.yellow,.changed::marker,.renamed::marker{color:light-dark(#9a6700,#d29922)}
b.red,.removed::marker{color:light-dark(#cf222e,#ff7b72)}
`

/** A comparison as one HTML file, which needs no network. Rejects with TypeError without elkjs if there are charts. */
export async function diffHtml(diff: AgentDiff): Promise<string> {
  const charts = await Promise.all(
    diff.charts.map(async chart =>
      html(
        'section',
        {},
        html('h2', {}, plainText(chartTitle(chart.chart))),
        await pairHtml(chart, [], diff.versions),
        changeList(chart.changes),
        tableHtml(
          ['Tasks in', 'Verdict', 'Why'],
          chart.configurations.map(one => rowHtml(one, []))
        )
      )
    )
  )
  const { before, after } = diff.versions
  return pageHtml(`Version ${before} before, ${after} now`, [
    headHtml(diff),
    diff.changes.length === 0 ? '' : changeList(diff.changes),
    ...charts,
    diff.work ? workHtml(diff.work) : ''
  ])
}

/** The open tasks of a store, compared, as one HTML file. Rejects as `diffHtml` does. */
export async function storedDiffHtml({ version, tasks, definitions }: StoredDiff): Promise<string> {
  const sections = await Promise.all(definitions.map(definitionHtml))
  return pageHtml(`${openTasksText(tasks)}, version ${version} now`, sections)
}

async function definitionHtml(one: DefinitionDiff): Promise<string> {
  const { diff, problem, groups } = one
  const charts = (diff?.charts ?? []).map(async chart => {
    const isWork = chart.chart === 'work'
    const active = isWork ? groups.flatMap(({ state }) => activeStateIds(chart.before.root, state)) : []
    const title = isWork ? '' : html('h3', {}, plainText(chartTitle(chart.chart)))
    return [title, await pairHtml(chart, active, (diff as AgentDiff).versions), changeList(chart.changes)]
  })
  return html(
    'section',
    {},
    html('h2', {}, plainText(definitionTitle(one))),
    problem === undefined ? '' : html('p', {}, plainText(problem)),
    ...(diff ? [headHtml(diff), diff.changes.length === 0 ? '' : changeList(diff.changes)] : []),
    ...(await Promise.all(charts)).flat(),
    tableHtml(
      ['Tasks in', 'Verdict', 'Tasks', 'Why'],
      groups.map(group => rowHtml(group, [groupText(group)]))
    )
  )
}

function groupText(group: StoredGroup): string {
  return html('td', {}, plainText(idsText(group)))
}

function pageHtml(title: string, content: readonly string[]): string {
  return `<!doctype html>\n${html(
    'html',
    { lang: 'en' },
    html(
      'head',
      {},
      '<meta charset="utf-8"/>',
      '<meta name="viewport" content="width=device-width"/>',
      `<meta http-equiv="Content-Security-Policy" content="${POLICY}"/>`,
      html('title', {}, plainText(title)),
      html('style', {}, STYLE)
    ),
    html('body', {}, html('main', {}, html('h1', {}, plainText(title)), ...content))
  )}\n`
}

function headHtml({ compared, notSeen }: AgentDiff): string {
  return html('p', { class: 'quiet' }, plainText(`Compared: ${compared.join('; ')}. Not seen: ${notSeen.join('; ')}.`))
}

async function pairHtml(chart: ChartDiff, active: readonly string[], versions: AgentDiff['versions']): Promise<string> {
  const { before, now } = await drawPair(chart, active)
  if (before === '') return '<p>The chart has too many states to be drawn.</p>'
  const lit = active.length === 0 ? '' : 'Blue: open tasks are here.'
  const side = (title: string, version: string, note: string, svg: string) =>
    html(
      'section',
      { 'aria-label': title },
      html('h3', {}, plainText(`${title}: version ${version}`)),
      html('p', { class: 'quiet' }, note),
      svg
    )
  return html(
    'div',
    { class: 'pair' },
    side('Before', versions.before, lit, before),
    side('Now', versions.after, 'Green: new. Red: gone. Orange: changed.', now)
  )
}

function changeList(changes: readonly Change[]): string {
  if (changes.length === 0) return '<p>No changes.</p>'
  return html('ul', {}, ...changes.map(changeHtml))
}

function changeHtml({ part, change, says, before = '', after = '' }: Change): string {
  const sources =
    part === 'code'
      ? html('details', {}, '<summary>source</summary>', sourceHtml('before', before), sourceHtml('now', after))
      : ''
  return html('li', { class: change }, plainText(says), sources)
}

function sourceHtml(side: string, source: string): string {
  return html('pre', {}, plainText(`${side}  ${source}`))
}

function tableHtml(head: readonly string[], rows: readonly string[]): string {
  const cells = head.map(name => html('th', { scope: 'col' }, name))
  // A scrolling box has to be reachable by keys.
  return html(
    'div',
    { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Verdicts' },
    html('table', {}, html('thead', {}, html('tr', {}, ...cells)), html('tbody', {}, ...rows))
  )
}

/** A row of a table. `more`: cells before the reasons. */
function rowHtml(
  one: Omit<ConfigurationVerdict, 'verdict'> & { readonly verdict: StoredVerdict },
  more: readonly string[]
): string {
  const details = detailsOf(one)
  const why = details.length === 0 ? '' : html('ul', {}, ...details.map(line => html('li', {}, plainText(line))))
  return html(
    'tr',
    {},
    html('td', {}, plainText(placeText(one))),
    verdictCell(one.verdict),
    ...more,
    html('td', {}, why)
  )
}

function verdictCell(verdict: StoredVerdict): string {
  return html('td', {}, html('b', { class: VERDICT_COLOURS[verdict] }, verdict))
}

function workHtml({ verdict, reasons }: NonNullable<AgentDiff['work']>): string {
  const why = reasons.map(reason => html('li', {}, plainText(reason)))
  return html(
    'section',
    {},
    html('p', {}, 'Every task: ', html('b', { class: VERDICT_COLOURS[verdict] }, verdict)),
    why.length === 0 ? '' : html('ul', {}, ...why)
  )
}
