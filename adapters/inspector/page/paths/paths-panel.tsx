import { computed } from '@preact/signals'
import { ChartPicture, statesIn, type ChartMarks } from '../chart/chart-picture.tsx'
import { coverage, hello } from '../feed/feed.ts'
import { ageText, nowMs } from '../frame/time.ts'

const chart = computed(() => hello.value?.charts.find(({ id }) => id === 'work'))

const marks = computed<ChartMarks>(() => {
  const { reached, missing = [] } = coverage.value ?? {}
  const states = new Set(reached?.states)
  const transitions = new Set(reached?.transitions)
  const missed = new Set(missing.map(({ name }) => name))
  const of = (names: ReadonlySet<string>) => (name: string) => (names.has(name) ? ['visited'] : missed.has(name) ? ['uncovered'] : [])
  return { states: of(states), transitions: of(transitions) }
})

/** The coverage of the work's chart by the last `taskchart test`. */
export function PathsPanel() {
  if (!chart.value) return <p class="empty">{hello.value ? 'The work of this agent is a function: only charts have paths.' : 'Waiting for the hub…'}</p>
  if (!coverage.value) {
    return (
      <div class="empty">
        <p>The chart’s paths have not been tested yet. In a terminal:</p>
        <pre class="paste">npx taskchart test AGENT.ts</pre>
        <p class="quiet">Its coverage then appears here.</p>
      </div>
    )
  }
  const { reached, missing, atMs } = coverage.value
  const states = statesIn(chart.value.svg).size
  return (
    <div class="panel paths-panel">
      <div class="tools" aria-live="polite">
        <b>{missing.length === 0 ? 'Everything was reached' : `${missing.length} not reached`}</b>
        <span>{`${reached.states.length} of ${Math.max(states, reached.states.length)} states, ${reached.transitions.length} transitions`}</span>
        <span class="quiet">{`tested ${ageText(atMs, nowMs.value)} ago`}</span>
        <span class="tools-gap" />
        <span class="legend"><i class="swatch swatch-reached" /> reached <i class="swatch swatch-missing" /> not reached</span>
      </div>
      <ChartPicture label={`${chart.value.title}, coverage by tests`} svg={chart.value.svg} marks={marks.value} />
      {missing.length > 0 && (
        <ul class="missing" aria-label="Not reached">
          {missing.map(({ name, why }) => <li key={name}><b>{name}</b> <span class="quiet">{why}</span></li>)}
        </ul>
      )}
    </div>
  )
}
