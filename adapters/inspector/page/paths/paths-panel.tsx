import { computed } from '@preact/signals'
import { ChartLegend, pathMarks } from '../chart/chart-panel.tsx'
import { ChartPicture, namesIn, type ChartMarks } from '../chart/chart-picture.tsx'
import { askHub, coverage, hello, testing } from '../feed/feed.ts'
import { nowMs } from '../page.ts'
import { Paste } from '../parts.tsx'
import { agoText, countText } from '../wording.ts'
import { chosenWalk, failedPath, FailedWalks } from './failed-walks.tsx'
import { ProofPanel } from './proof-panel.tsx'
import { ShownChoice, shownInPaths } from './shown-choice.tsx'
import { TaskHeat } from './task-heat.tsx'

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
