import { computed, signal } from '@preact/signals'
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { ActorRow, ActorStep, Chart, ComparedChart, ShownComparison } from '../../feed.ts'
import { innermost, rebuiltSteps, stateName } from '../../story/chart-path.ts'
import { log, shownTaskId } from '../agent/task-log.ts'
import { askHub, compared, feedState, hello } from '../feed/feed.ts'
import { actors, contextChanges, contexts, missedSteps, steps, taskChanges, tasks } from '../feed/known.ts'
import { copyText } from '../parts.tsx'
import { contextId, part, taskId } from '../selection.ts'
import { isNewest, stepsUntilThen } from '../time-bar.tsx'
import { countText, eventText } from '../wording.ts'
import { ChartPicture, namesIn, type ChartMarks } from './chart-picture.tsx'
import { type ChartPath, chartPathOf } from './walked-path.ts'

/** A chart to show, with the actor that runs it, if any. */
interface ChartChoice {
  readonly key: string
  readonly chart: Chart
  readonly actor?: ActorRow
}

/** The key of the user's choice; without one, the work of the chosen task is shown. */
const chosenKey = signal<string | undefined>(undefined)

/** The states and transitions of each chart. */
export const chartNames = computed(() => new Map(hello.value?.charts.map(({ id, svg }) => [id, namesIn(svg)])))

/** The choices in this context: the actors of the chosen task and of the context, then charts without an actor. */
export const choices = computed<readonly ChartChoice[]>(() => {
  const charts = hello.value?.charts ?? []
  const here = actors.value.filter(({ taskId: of }) => of === undefined || of === taskId.value)
  const running = here.flatMap(actor => {
    const chart = charts.find(({ id }) => id === actor.chart)
    return chart ? [{ key: actor.sessionId, chart, actor }] : []
  })
  const idle = charts
    .filter(({ id }) => !running.some(({ chart }) => chart.id === id))
    .map(chart => ({ key: chart.id, chart }))
  return [...running, ...idle]
})

/** The chart of the work of the chosen task; without a task, that of the work. `undefined` if it was not recorded. */
export const workChoice = computed(() => {
  const work = choices.value.filter(({ chart }) => chart.id === 'work')
  const seen = work.find(({ actor }) => actor?.status === 'active') ?? work.findLast(isSeen)
  return seen ?? (log.value === undefined ? work.at(-1) : undefined)
})

/** The shown chart. */
export const choice = computed<ChartChoice | undefined>(() => {
  const all = choices.value
  return (
    all.find(({ key }) => key === chosenKey.value) ??
    workChoice.value ??
    all.find(({ chart }) => chart.id === 'task') ??
    all[0]
  )
})

/** The recorded steps of the shown actor, in its chart. */
const recordedSteps = computed(() => (choice.value ? recordedOf(choice.value) : []))

/** Whether the shown path is rebuilt from the stored events, since it was not recorded. */
const isRebuilt = computed(
  () => recordedSteps.value.length === 0 && choice.value?.chart.id === 'task' && log.value !== undefined
)

/**
 * The steps of the shown actor, in its chart: recorded, or those of the task's own chart rebuilt from its stored
 * events.
 */
export const chosenSteps = computed(() => {
  const names = chartNames.value.get('task')
  return isRebuilt.value && log.value && names ? rebuiltSteps(log.value.events, names) : recordedSteps.value
})

/** The path of a choice up to the shown generation, of its recorded steps or of given ones. */
export function pathOfChoice(one: ChartChoice | undefined, steps = one ? recordedOf(one) : []): ChartPath {
  void contextChanges.value
  // The author's chart of a negotiation is no actor: its states are those of the offer that stands.
  if (one?.chart.id === 'respond') return chartPathOf([], contexts.get(contextId.value ?? '')?.offer?.states ?? [])
  const now = isNewest.value && one?.actor && one.actor.states.length > 0 ? one.actor.states : undefined
  return chartPathOf(stepsUntilThen(steps), now)
}

function recordedOf({ chart, actor }: ChartChoice) {
  const { states } = chartNames.value.get(chart.id) ?? { states: new Set<string>() }
  if (actor) return stepsOf(steps.value, actor, states)
  return shownTaskId.value === undefined ? [] : stepsOf(steps.value, { taskId: shownTaskId.value }, states)
}

function isSeen(choice: ChartChoice): boolean {
  return choice.actor !== undefined || recordedOf(choice).length > 0
}

/** The steps of an actor in its chart: by session, or those of a task whose states all belong to the chart. */
function stepsOf(
  steps: readonly ActorStep[],
  who: { readonly sessionId: string } | { readonly taskId: string },
  chartStates: ReadonlySet<string>
): ActorStep[] {
  const isIts =
    'sessionId' in who ? ({ to }: ActorStep) => to === who.sessionId : ({ taskId }: ActorStep) => taskId === who.taskId
  return steps.filter(
    step =>
      isIts(step) && step.states !== undefined && step.states.length > 0 && step.states.every(id => chartStates.has(id))
  )
}

/** Why a chart shows no state at the shown generation. */
export function unseenText(title: string): string {
  if (chosenSteps.value.length > 0) return `${title} had not started at this generation.`
  return `The steps of ${title} were not recorded: the task ran while no inspector watched. The chart “A task” is rebuilt from its stored events.`
}

/** The label of a choice. */
function choiceText({ chart, actor }: ChartChoice): string {
  if (!actor) return chart.title
  const ended = actor.status === 'active' ? '' : `, ${actor.status}`
  return `${chart.title} · ${actor.name}${ended}`
}

const path = computed(() => pathOfChoice(choice.value, chosenSteps.value))
const marks = computed(() => pathMarks(path.value))

/** The marks of a path in its chart. */
export function pathMarks({ active, visited, transitions: taken, last }: ChartPath): ChartMarks {
  return {
    states: id => [...(active.includes(id) ? ['active'] : []), ...(visited.has(id) ? ['visited'] : [])],
    transitions: name => [...(taken.has(name) ? ['taken'] : []), ...(last.includes(name) ? ['last'] : [])]
  }
}

/** The statechart of the chosen actor, with its state and its path. */
export function ChartPanel() {
  const chosen = choice.value
  const comparison = useComparison()
  const [isCompared, setCompared] = useState(true)
  if (!chosen)
    return (
      <p class="empty">
        {hello.value ? 'This agent has no charts: its work is a function.' : 'Waiting for the agent…'}
      </p>
    )
  const { chart } = chosen
  const pair = comparison?.charts.find(({ id }) => id === chart.id)
  const shown = isCompared ? pair : undefined
  return (
    <div class="panel chart-panel">
      {comparison && <Verdict comparison={comparison} />}
      <div class="tools">
        <label>
          <span class="quiet">Actor</span>
          <select value={chosen.key} onChange={event => (chosenKey.value = event.currentTarget.value)}>
            {choices.value.map(one => (
              <option key={one.key} value={one.key}>
                {choiceText(one)}
              </option>
            ))}
          </select>
        </label>
        {pair && (
          <button type="button" aria-pressed={isCompared} onClick={() => setCompared(!isCompared)}>
            Before and now
          </button>
        )}
        {!shown && <SaveTools chart={chart} />}
      </div>
      {comparison && shown ? (
        <BeforeAfter key={shown.before} comparison={comparison} pair={shown} />
      ) : (
        <ChartPicture label={`${chart.title}. Active: ${activeText(path.value)}`} svg={chart.svg} marks={marks.value} />
      )}
      {!shown && (
        <div class="path" aria-live="polite">
          {path.value.active.length > 0 && <span class="path-now">{`Now: ${activeText(path.value)}`}</span>}
          <Trail />
          <span class="tools-gap" />
          <ChartLegend />
        </div>
      )}
    </div>
  )
}

/** Saves the shown chart, in three forms. */
function SaveTools({ chart }: Pick<ChartChoice, 'chart'>) {
  return (
    <>
      <span class="tools-gap" />
      <span class="saves" role="group" aria-label="Save the chart">
        <span class="quiet">Save as</span>
        <button
          type="button"
          title="A drawing, as it is shown"
          onClick={() => save(`${chart.title}.svg`, 'image/svg+xml', shownSvg(chart.svg))}
        >
          SVG
        </button>
        <button
          type="button"
          title="Mermaid text, as in Markdown on GitHub"
          onClick={() => save(`${chart.title}.mmd`, 'text/plain', chart.mermaid)}
        >
          Mermaid
        </button>
        <button
          type="button"
          title="A module with createMachine, which Stately’s editor imports"
          onClick={() => save(`${chart.title}.js`, 'text/javascript', chart.source)}
        >
          XState
        </button>
      </span>
      <button type="button" onClick={() => void copyText(chart.mermaid)}>
        Copy Mermaid
      </button>
    </>
  )
}

/** The picture as shown, with its marks. */
function shownSvg(svg: string): string {
  const shown = document.querySelector<SVGSVGElement>('.chart-panel .chart-sheet > svg')
  return shown ? new XMLSerializer().serializeToString(shown) : svg
}

function activeText({ active }: Pick<ChartPath, 'active'>): string {
  return innermost(active).map(stateName).join(', ') || 'nothing'
}

/** The comparison of the chosen task, if the agent has changed since the task was opened. */
const chosenComparison = computed(() =>
  compared.value?.taskId === taskId.value ? compared.value?.comparison : undefined
)

/** The verdicts on tasks that go on the same way. */
const UNCHANGED = ['same', 'gone on']

/** Whether the chosen task goes on the same way, as far as is known. */
export const goesOnTheSame = computed(() => UNCHANGED.includes(chosenComparison.value?.verdict ?? 'same'))

/** Gives the comparison of the chosen task, and asks the hub for it when the task or the agent changes. */
function useComparison(): ShownComparison | undefined {
  void taskChanges.value
  const id = taskId.value
  const comparison = chosenComparison.value
  const generation = comparison && id !== undefined ? tasks.get(id)?.generation : undefined
  const instance = feedState.value === 'open' ? hello.value?.instance : undefined
  useEffect(() => {
    if (id !== undefined && instance !== undefined) askHub({ type: 'compare', taskId: id })
  }, [id, instance, generation])
  return comparison
}

/** Says that the agent has changed since the chosen task was opened, and how the task goes on. */
export function ChangedLine() {
  const comparison = useComparison()
  if (!comparison || comparison.verdict === 'ended') return null
  return (
    <p class="changed-line">
      {`${openedText(comparison)} `}
      <b class={toneOf(comparison)}>{comparison.says}</b>{' '}
      <button type="button" class="plain" onClick={() => (part.value = 'chart')}>
        See what has changed
      </button>
    </p>
  )
}

function openedText({ versions: { before, now }, isKept }: ShownComparison): string {
  if (isKept) return `This task was opened with version ${before}, whose work the agent keeps.`
  if (before === now) return 'The agent has changed since this task was opened.'
  const opened = before === '' ? 'without a version' : `with version ${before}`
  return `This task was opened ${opened}, and the agent has version ${now} now.`
}

function toneOf({ verdict }: ShownComparison): string {
  if (verdict === 'ended') return ''
  if (UNCHANGED.includes(verdict)) return 'tone-good'
  return ['not restored', 'never ends'].includes(verdict) ? 'tone-bad' : 'tone-warn'
}

/** How the task goes on, why, and what has changed. */
function Verdict({ comparison }: { readonly comparison: ShownComparison }) {
  const { says, details, word, changes, moreChanges } = comparison
  return (
    <section class="compared" aria-label="How this task goes on">
      <p>
        {`${openedText(comparison)} `}
        <b class={toneOf(comparison)}>{says}</b>
      </p>
      {details.length > 0 && (
        <ul>
          {details.map((line, i) => (
            <li key={i}>{line}</li>
          ))}
        </ul>
      )}
      {word && (
        <dl>
          <dt>{word.number === undefined ? 'Before' : `Word ${word.number} before`}</dt>
          <dd>{word.before}</dd>
          <dt>Now</dt>
          <dd>{word.now}</dd>
        </dl>
      )}
      <details>
        <summary>{countText(changes.length + moreChanges, 'change')}</summary>
        <ul>
          {changes.map(({ change, says: what }, i) => (
            <li key={i} class={`change-${change}`}>
              {what}
            </li>
          ))}
          {moreChanges > 0 && <li class="quiet">{`and ${moreChanges} more`}</li>}
        </ul>
      </details>
    </section>
  )
}

/** The chart with which the task was opened, lit as far as the task came, beside the chart of now with what differs. */
function BeforeAfter({ comparison, pair }: { readonly comparison: ShownComparison; readonly pair: ComparedChart }) {
  const [side, setSide] = useState<'before' | 'now'>('now')
  const { versions, verdict } = comparison
  const names = useMemo(() => namesIn(pair.before), [pair.before])
  const own = stepsUntilThen(stepsOf(steps.value, { taskId: taskId.value ?? '' }, names.states))
  const stood = isNewest.value && pair.stands.before.length > 0 ? pair.stands.before : undefined
  const then = chartPathOf(own, stood)
  const active = !isNewest.value ? [] : verdict === 'gone on' ? path.value.active : pair.stands.now
  const nowMarks = useMemo<ChartMarks>(
    () => ({ states: id => (active.includes(id) ? ['active'] : []), transitions: () => [] }),
    [active.join('\n')]
  )
  const thenMarks = useMemo(() => pathMarks(then), [own, stood?.join('\n')])
  const sides = [
    { name: 'before', title: 'Before', version: versions.before, svg: pair.before, marks: thenMarks, at: then.active },
    { name: 'now', title: 'Now', version: versions.now, svg: pair.now, marks: nowMarks, at: active }
  ] as const
  return (
    <div class="before-after" data-side={side}>
      <div class="before-after-switch" role="group" aria-label="Which chart is shown">
        {sides.map(({ name, title }) => (
          <button key={name} type="button" aria-pressed={side === name} onClick={() => setSide(name)}>
            {title}
          </button>
        ))}
      </div>
      {sides.map(({ name, title, version, svg, marks: lit, at }) => (
        <section key={name} class={`side side-${name}`} aria-label={title}>
          <p class="side-head">
            <b>{title}</b> <span class="quiet">{version}</span>
            <span>{at.length > 0 ? `in ${activeText({ active: at })}` : SIDE_EMPTY[name]}</span>
            <span class="tools-gap" />
            {name === 'now' ? <DifferenceLegend /> : <ChartLegend />}
          </p>
          {svg === '' ? (
            <p class="empty">This chart cannot be drawn here. taskchart diff lists what has changed in it.</p>
          ) : (
            <ChartPicture label={`${title}. Active: ${activeText({ active: at })}`} svg={svg} marks={lit} />
          )}
        </section>
      ))}
    </div>
  )
}

const SIDE_EMPTY = { before: 'steps unknown', now: 'in no state' } as const

function DifferenceLegend() {
  return (
    <span class="legend" role="group" aria-label="What differs">
      {(['new', 'gone', 'changed'] as const).map(what => (
        <span key={what}>
          <i class={`swatch swatch-${what}`} /> {what}
        </span>
      ))}
    </span>
  )
}

/** The number of stops that are listed. */
const LAST_STOPS = 12

function Trail() {
  const { stops } = path.value
  const { chart, actor } = choice.value ?? {}
  if (chart?.id === 'respond' && path.value.active.length > 0) return null
  if (stops.length === 0)
    return (
      <span class="quiet">
        {chart && (!actor || !isNewest.value) && taskId.value !== undefined
          ? unseenText(chart.title)
          : 'Nothing has run yet. Send a message, and watch it here.'}
      </span>
    )
  return (
    <ol class="trail" aria-label="The path so far">
      {(stops.length > LAST_STOPS || missedSteps.value > 0) && <li class="quiet">…</li>}
      {stops.slice(-LAST_STOPS).map(({ event, states }, i) => (
        <li key={i} title={eventText(event)}>
          {states.map(stateName).join(', ')}
        </li>
      ))}
      {isRebuilt.value && <li class="quiet rebuilt">rebuilt from the stored events</li>}
    </ol>
  )
}

/** The meaning of the chart's colours. */
export function ChartLegend() {
  return (
    <span class="legend" role="group" aria-label="Colours">
      <span>
        <i class="swatch swatch-now" /> now
      </span>
      <span>
        <i class="swatch swatch-before" /> before
      </span>
      <span>
        <i class="stroke stroke-last" /> last step
      </span>
      <span>
        <i class="stroke stroke-taken" /> taken
      </span>
    </span>
  )
}

/** Saves a text as a file. */
function save(name: string, mediaType: string, content: string): void {
  const url = URL.createObjectURL(new Blob([content], { type: mediaType }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
