import type { Message, Task } from '../../../machines/protocol/objects.ts'
import { stateText } from '../../../machines/protocol/states.ts'
import { taskMachine } from '../../../machines/task.machine.ts'
import type { Scope } from '../../../runtime/store/rows.ts'
import type { TaskEvent } from '../../../runtime/store/store.ts'
import { readAllEvents, readWhole } from '../../../runtime/streams/task-stream.ts'
import type { Observation } from '../../../runtime/telemetry-port.ts'
import { outlineOf } from '../../drawing/outline.ts'
import { attributeText } from '../../drawing/svg-element.ts'
import type { Chart, ActorStep } from '../feed.ts'
import type { Recorder } from '../recorder/recorder.ts'
import { type Redact, shownStep } from '../recorder/seen-step.ts'
import { type ChartNames, eventWords, partsText, chartPathOf, rebuiltSteps } from './chart-path.ts'
import { exampleText } from './recorded-example.ts'
import { html, partsHtml, plainText } from './story-parts.ts'

/** A chart of a story, with the steps that the task took in it. */
interface StoryChart {
  readonly title: string
  /** The drawing of `taskchart graph`. */
  readonly svg: string
  readonly steps: readonly ActorStep[]
  /** Whether the steps are rebuilt from the stored events. */
  readonly isRebuilt: boolean
}

/** The content of a story. */
interface Story {
  /** The name of the agent, if known. */
  readonly agent?: string
  readonly task: Task
  /** The events of the task, oldest first; none if they are not known. */
  readonly events: readonly TaskEvent[]
  readonly charts: readonly StoryChart[]
}

/** Nothing is loaded and nothing runs; pictures are part of the file. */
const POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

const STYLE = `
:root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}
body{margin:0 auto;max-width:1000px;padding:16px}
h1{font-size:22px;margin:0}h2{font-size:17px;margin:28px 0 8px}
.quiet,figcaption{color:#6a737d}
.chart{overflow:auto}.chart svg{max-width:100%;height:auto}
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:4px 8px;border-bottom:1px solid #8884}
pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;font:inherit}pre.data{font:13px/1.4 ui-monospace,monospace}
article{margin:8px 0;padding:8px 12px;border:1px solid #8886;border-radius:8px;max-width:720px}
article.client{margin-left:auto;background:#0969da1a}
article p{margin:0 0 4px}img{max-width:100%}figure{margin:4px 0}
`

/**
 * The story of a task as one HTML file, which needs no network: its charts, its sequence, and its talk. `redact` copies
 * texts and data without secrets; files stay as they are.
 */
export function storyHtml({ agent, task, events, charts }: Story, redact: Redact): string {
  const {
    id,
    contextId,
    status: { state, timestamp = '' },
    artifacts = []
  } = task
  const title = `${agent === undefined ? '' : `${agent}: `}task ${id}`
  const lines = storyLines(task, events)
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
    html(
      'body',
      {},
      html('h1', {}, plainText(title)),
      html('p', { class: 'quiet' }, plainText(`${stateText(state)} ${timestamp}, context ${contextId}`)),
      ...charts.map(chartHtml),
      html('h2', {}, 'Sequence'),
      sequenceHtml(lines, redact),
      html('h2', {}, 'Talk'),
      ...lines.flatMap(({ message }) => (message ? [messageHtml(message, redact)] : [])),
      html('h2', {}, 'Artifacts'),
      ...(artifacts.length === 0
        ? ['<p class="quiet">None.</p>']
        : artifacts.map(({ artifactId, name, description, parts }) =>
            html(
              'article',
              {},
              html('b', {}, plainText(String(redact(name || artifactId)))),
              html('p', { class: 'quiet' }, plainText(String(redact(description ?? '')))),
              partsHtml(parts, redact)
            )
          ))
    )
  )}\n`
}

function chartHtml({ title, svg, steps, isRebuilt }: StoryChart): string {
  const note = steps.length === 0 ? 'No step of it was recorded.' : isRebuilt ? 'Rebuilt from the stored events.' : ''
  return html(
    'section',
    { class: 'chart' },
    html('h2', {}, plainText(title)),
    litSvg(svg, steps),
    html('p', { class: 'quiet' }, note)
  )
}

/** A drawing with the classes of a path: active and visited states, used transitions. */
function litSvg(svg: string, steps: readonly ActorStep[]): string {
  const { active, visited, transitions } = chartPathOf(steps)
  const [now, before, through] = [active, visited, transitions].map(names => new Set(Array.from(names, attributeText)))
  return svg.replace(
    /<g class="([^"]*)" data-(state|transition)="([^"]*)"/g,
    (whole, classes: string, kind: string, name: string) => {
      const marks =
        kind === 'state'
          ? [...(now?.has(name) ? ['active'] : []), ...(before?.has(name) ? ['visited'] : [])]
          : through?.has(name)
            ? ['taken']
            : []
      return marks.length === 0 ? whole : `<g class="${[classes, ...marks].join(' ')}" data-${kind}="${name}"`
    }
  )
}

/** One line of the sequence. */
export interface StoryLine {
  readonly generation: number | undefined
  readonly from: 'client' | 'agent'
  readonly what: string
  readonly message?: Message | undefined
}

/**
 * Messages and events in one order. A message of the client has no generation: it comes after the agent's message
 * before it. Without events, there are only messages.
 */
export function storyLines({ status, history = [] }: Task, events: readonly TaskEvent[]): StoryLine[] {
  const messages =
    status.message && !history.some(({ messageId }) => messageId === status.message?.messageId)
      ? [...history, status.message]
      : history
  const lines: StoryLine[] = []
  const places = new Map(
    events.flatMap(({ update }, i) =>
      'statusUpdate' in update && update.statusUpdate.status.message
        ? [[update.statusUpdate.status.message.messageId, i] as const]
        : []
    )
  )
  let next = 0
  const takeUntil = (messageId: string) => {
    const at = places.get(messageId) ?? -1
    for (; next <= at; next += 1) lines.push(lineOf(events[next] as TaskEvent))
    return at >= 0
  }
  for (const message of messages) {
    const isKnown = message.role === 'ROLE_AGENT' && takeUntil(message.messageId)
    if (!isKnown)
      lines.push({
        generation: undefined,
        from: message.role === 'ROLE_AGENT' ? 'agent' : 'client',
        what: 'message',
        message
      })
  }
  return [...lines, ...events.slice(next).map(lineOf)]
}

function lineOf(event: TaskEvent): StoryLine {
  const { generation, update } = event
  if ('artifactUpdate' in update) return { generation, from: 'agent', what: eventWords(event) }
  const { state, message } = update.statusUpdate.status
  return { generation, from: 'agent', what: stateText(state), message }
}

function sequenceHtml(lines: readonly StoryLine[], redact: Redact): string {
  const rows = lines.map(({ generation, from, what, message }) =>
    html(
      'tr',
      {},
      html('td', {}, generation === undefined ? '' : String(generation)),
      html('td', {}, from === 'client' ? 'client → agent' : 'agent → client'),
      html('td', {}, plainText(what)),
      html('td', {}, plainText(String(redact(partsText(message?.parts)))))
    )
  )
  return html(
    'table',
    {},
    html('thead', {}, '<tr><th>Generation</th><th></th><th></th><th></th></tr>'),
    html('tbody', {}, ...rows)
  )
}

function messageHtml({ role, parts }: Message, redact: Redact): string {
  const from = role === 'ROLE_AGENT' ? 'agent' : 'client'
  return html('article', { class: from }, html('p', { class: 'quiet' }, from), partsHtml(parts, redact))
}

/** The states and transitions of taskchart's own chart of a task. */
export function taskChartNames(): ChartNames {
  const { states, transitions } = outlineOf(taskMachine)
  return { states: new Set(states.map(({ id }) => id)), transitions: transitions.map(({ name }) => name) }
}

/** Where the story of a watched agent comes from. */
interface StorySource {
  readonly agent: string
  readonly store: Observation['store']
  readonly recorder: Recorder
  readonly charts: readonly Chart[]
  readonly redact: Redact
}

/** What is known of a task: the task, its events, and its recorded steps; `undefined` if it is not in this scope. */
async function readRun({ store, recorder }: Pick<StorySource, 'store' | 'recorder'>, scope: Scope, taskId: string) {
  const stored = await readWhole(store, scope, taskId)
  if (!stored) return undefined
  const { task, generation } = stored
  const events = await readAllEvents(store, scope, taskId, generation)
  const steps = (recorder.find(task.contextId)?.steps.from(1) ?? []).filter(({ to }) => to.taskId === taskId)
  return { task, events, steps }
}

/** The story of a task as an HTML file; `undefined` if there is none in this scope. */
export async function taskStory(
  { agent, charts, redact, ...source }: StorySource,
  scope: Scope,
  taskId: string
): Promise<string | undefined> {
  const run = await readRun(source, scope, taskId)
  if (!run) return undefined
  const { task, events } = run
  const steps = run.steps.filter(({ nodes }) => nodes !== undefined)
  const shown = charts.flatMap(({ id, title, svg }): StoryChart[] => {
    const own = steps.filter(({ to }) => to.chart === id).map(step => shownStep(step, redact))
    if (own.length > 0) return [{ title, svg, steps: own, isRebuilt: false }]
    return id === 'task' ? [{ title, svg, steps: rebuiltSteps(events, taskChartNames()), isRebuilt: true }] : []
  })
  const story: Story = { agent, task, events, charts: shown }
  return storyHtml(story, redact)
}

/**
 * A task as a recorded example, as JSON text without secrets; `undefined` if there is none in this scope. Files in
 * messages and artifacts stay as they are.
 */
export async function taskExample(
  { redact, ...source }: Omit<StorySource, 'agent' | 'charts'>,
  scope: Scope,
  taskId: string
): Promise<string | undefined> {
  const run = await readRun(source, scope, taskId)
  return run && exampleText(run.task, run.events, run.steps, redact)
}
