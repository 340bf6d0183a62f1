import { computed, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { FailedWalk } from '../../test-result.ts'
import { ChartLegend, pathMarks } from '../chart/chart-panel.tsx'
import { type ChartMarks, ChartPicture, namesIn } from '../chart/chart-picture.tsx'
import type { ChartPath } from '../chart/walked-path.ts'
import { askHub, coverage, heat, hello, testing } from '../feed/feed.ts'
import { nowMs } from '../page.ts'
import { Paste } from '../parts.tsx'
import { agoText, countText } from '../wording.ts'
import { ProofPanel, ShownChoice, shownInPaths, walkedPath, WalkView } from './proof-panel.tsx'

const chart = computed(() => hello.value?.charts.find(({ id }) => id === 'work'))

const marks = computed<ChartMarks>(() => {
  if (chosenWalk.value) return pathMarks(failedPath(chosenWalk.value))
  const { reached, missing = [] } = coverage.value ?? {}
  const states = new Set(reached?.states)
  const transitions = new Set(reached?.transitions)
  const missed = new Set(missing.map(({ name }) => name))
  const of = (names: ReadonlySet<string>) => (name: string) =>
    names.has(name) ? ['visited'] : missed.has(name) ? ['uncovered'] : []
  return { states: of(states), transitions: of(transitions) }
})

/** Whether the chart has other states or transitions than when it was tested. */
const isChanged = computed(() => {
  if (!chart.value || !coverage.value) return false
  const { reached, missing } = coverage.value
  const { states, transitions } = namesIn(chart.value.svg)
  const tested = new Set([...reached.states, ...reached.transitions, ...missing.map(({ name }) => name)])
  const drawn = new Set([...states, ...transitions])
  return tested.size !== drawn.size || [...drawn].some(name => !tested.has(name))
})

/**
 * The coverage of the work's chart by the last `taskchart test`, and the walks that failed; or what is proved, or what
 * tasks took.
 */
export function PathsPanel() {
  if (!chart.value)
    return (
      <p class="empty">
        {hello.value ? 'The work of this agent is a function: only charts have paths.' : 'Waiting for the agent…'}
      </p>
    )
  if (shownInPaths.value === 'tasks') return <TaskHeat />
  if (shownInPaths.value === 'proof') return <ProofPanel />
  if (!coverage.value) {
    return (
      <div class="panel">
        <div class="tools">
          <ShownChoice />
        </div>
        <div class="empty">
          <p>The chart’s paths have not been tested yet.{hello.value?.tests ? '' : ' In a terminal:'}</p>
          {hello.value?.tests ? <RunTests label="Run the tests" /> : <Paste line="npx taskchart test AGENT.ts" />}
          <p class="quiet">Its coverage then appears here.</p>
        </div>
      </div>
    )
  }
  const { reached, missing, failed = [], atMs } = coverage.value
  const states = namesIn(chart.value.svg).states.size
  return (
    <div class={chosenWalk.value ? 'panel' : 'panel paths-panel'}>
      <div class="tools">
        <ShownChoice />
        <b>{missing.length === 0 ? 'Everything was reached' : `${missing.length} not reached`}</b>
        {failed.length > 0 && <b class="wrong">tests failed</b>}
        <span>{`${reached.states.length} of ${Math.max(states, reached.states.length)} states, ${reached.transitions.length} transitions`}</span>
        <span class="quiet">{`tested ${agoText(atMs, nowMs.value)}`}</span>
        {isChanged.value && (
          <span class="wrong" role="status">
            the chart has changed since
          </span>
        )}
        {hello.value?.tests && <RunTests label="Run again" />}
        <span class="tools-gap" />
        {chosenWalk.value ? (
          <ChartLegend />
        ) : (
          <span class="legend">
            <i class="swatch swatch-reached" /> reached <i class="swatch swatch-missing" /> not reached
          </span>
        )}
      </div>
      <ChartPicture
        label={`${chart.value.title}, ${chosenWalk.value ? `a failed walk: ${chosenWalk.value.name}` : 'coverage by tests'}`}
        svg={chart.value.svg}
        marks={marks.value}
      />
      <FailedWalks />
      {missing.length > 0 && !chosenWalk.value && (
        <ul class="missing" aria-label="Not reached" tabIndex={0}>
          {missing.map(({ name, why }) => (
            <li key={name}>
              <b>{name}</b> <span class="quiet">{why}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

/** A button that runs the tests, and their progress. */
function RunTests({ label }: { readonly label: string }) {
  const { isRunning = false, done, total, failed = 0, error } = testing.value ?? {}
  return (
    <span class="run-tests">
      <button type="button" disabled={isRunning} onClick={() => askHub({ type: 'test' })}>
        {label}
      </button>
      <span role="status">
        {isRunning && (total ? `${done} of ${countText(total, 'test')}` : 'finding the paths…')}
      </span>
      {failed > 0 && <span class="wrong">{`${failed} failed`}</span>}
      {error !== undefined && (
        <pre class="paste wrong" role="alert">
          {error}
        </pre>
      )}
    </span>
  )
}

const failedWalks = computed(() => coverage.value?.failed ?? [])

/** The failed walk that was opened, by driver and name. */
const openedWalk = signal<string | undefined>(undefined)

/** The failed walk that is shown. */
const chosenWalk = computed(() => failedWalks.value.find(walk => keyOf(walk) === openedWalk.value))

/** The path of a walk through the chart, up to the step that failed. */
function failedPath({ steps, at }: FailedWalk): ChartPath {
  return walkedPath(steps.slice(0, at + 1))
}

/** The failed walks: a list, or one with its steps. */
function FailedWalks() {
  if (failedWalks.value.length === 0) return null
  if (chosenWalk.value) return <FailedWalkView walk={chosenWalk.value} />
  return (
    <section class="missing" aria-label="Failed walks" tabIndex={0}>
      <p>Choose a failed walk to see it in the chart:</p>
      <ul>
        {failedWalks.value.map(walk => (
          <li key={keyOf(walk)}>
            <button type="button" class="plain" title={walk.name} onClick={() => (openedWalk.value = keyOf(walk))}>
              <b>{walk.driver}</b>: {walk.name}
            </button>
          </li>
        ))}
      </ul>
    </section>
  )
}

function FailedWalkView({ walk: { name, driver, steps, at, message, alone } }: { readonly walk: FailedWalk }) {
  return (
    <WalkView
      label="A failed walk"
      title={
        <>
          <b>{driver}</b>: {name}
        </>
      }
      back={() => (openedWalk.value = undefined)}
      alone={alone}
      after={<pre class="part-data">{message}</pre>}
    >
      {steps.map(({ move }, i) => (
        <li key={i} class={i === at ? 'wrong' : i > at ? 'quiet' : ''} aria-current={i === at ? 'step' : undefined}>
          {move}
          {i === at && <b> failed</b>}
        </li>
      ))}
    </WalkView>
  )
}

function keyOf({ driver, name }: FailedWalk): string {
  return `${driver}: ${name}`
}

/** The interval at which the counts are requested while they are shown. */
const ASK_MS = 2000

/** The number of widths of a line. */
const WIDTHS = 4

/** The id of the chosen chart; by default, the work is shown. */
const heatChartId = signal('work')

/** The shown chart, with the counts of its transitions. */
const shownHeat = computed(() => {
  const charts = heat.value?.charts ?? []
  const counts = charts.find(({ chart }) => chart === heatChartId.value) ?? charts[0]
  const drawn = hello.value?.charts.find(({ id }) => id === counts?.chart)
  return counts && drawn && { drawn, transitions: counts.transitions }
})

const heatMarks = computed<ChartMarks>(() => {
  const { transitions = [] } = shownHeat.value ?? {}
  const most = Math.max(...transitions.map(({ count }) => count))
  const counts = new Map(transitions.map(({ name, count }) => [name, count]))
  return { states: () => [], transitions: name => marksOf(counts.get(name), most) }
})

/** The wider, the more often; widths grow with the logarithm of the count. */
function marksOf(count: number | undefined, most: number): string[] {
  if (count === undefined) return []
  return count === 0 ? ['untaken'] : ['taken', `heat-${Math.ceil((WIDTHS * Math.log(count + 1)) / Math.log(most + 1))}`]
}

/** How often real tasks took each transition of the author's charts. Requests it only while it is shown. */
function TaskHeat() {
  useEffect(() => {
    const ask = () => document.visibilityState === 'visible' && askHub({ type: 'heat' })
    ask()
    const timer = setInterval(ask, ASK_MS)
    return () => clearInterval(timer)
  }, [])
  if (!shownHeat.value) {
    const { error } = heat.value ?? {}
    return (
      <div class="panel">
        <div class="tools">
          <ShownChoice />
        </div>
        <p class="empty">
          {error === undefined ? (
            'Reading the counts…'
          ) : (
            <span class="wrong" role="alert">
              {error}
            </span>
          )}
        </p>
      </div>
    )
  }
  const { drawn, transitions } = shownHeat.value
  const taken = transitions.filter(({ count }) => count > 0).length
  return (
    <div class="panel heat-panel">
      <div class="tools">
        <ShownChoice />
        <HeatChartChoice />
        <b>{`Tasks took ${taken} of ${countText(transitions.length, 'transition')}`}</b>
        <span class="quiet">Counts are stored once a second: a kill may lose the last second.</span>
        <span class="tools-gap" />
        <span class="legend" role="group" aria-label="Lines">
          <span>
            <i class="stroke stroke-untaken" /> never
          </span>
          <span>
            <i class="stroke stroke-rare" /> seldom
          </span>
          <span>
            <i class="stroke stroke-often" /> often
          </span>
        </span>
      </div>
      <ChartPicture label={`${drawn.title}, what tasks took`} svg={drawn.svg} marks={heatMarks.value} />
      <Transitions />
    </div>
  )
}

function HeatChartChoice() {
  const { charts = [] } = heat.value ?? {}
  if (charts.length < 2) return null
  return (
    <label>
      <span class="quiet">Chart</span>
      <select value={shownHeat.value?.drawn.id} onChange={event => (heatChartId.value = event.currentTarget.value)}>
        {charts.map(({ chart }) => (
          <option key={chart} value={chart}>
            {hello.value?.charts.find(({ id }) => id === chart)?.title}
          </option>
        ))}
      </select>
    </label>
  )
}

/** The transitions with their counts: those that no task took, then the most frequent first. */
function Transitions() {
  const { drawn, transitions = [] } = shownHeat.value ?? {}
  const reached = drawn?.id === 'work' ? coverage.value?.reached.transitions : undefined
  const sorted = transitions.toSorted((a, b) => Number(a.count > 0) - Number(b.count > 0) || b.count - a.count)
  return (
    <ul class="missing" aria-label="Transitions" tabIndex={0}>
      {sorted.map(({ name, count }) => (
        <li key={name}>
          <b class={count === 0 ? 'wrong' : ''}>{count === 0 ? 'never' : `${count.toLocaleString('en')} ×`}</b> {name}
          {reached?.includes(name) === false && <span class="quiet"> no test takes it</span>}
        </li>
      ))}
    </ul>
  )
}
