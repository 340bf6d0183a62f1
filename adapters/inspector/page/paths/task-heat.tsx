import { computed, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { ChartPicture, type ChartMarks } from '../chart/chart-picture.tsx'
import { askHub, coverage, heat, hello } from '../feed/feed.ts'
import { countText } from '../wording.ts'
import { ShownChoice } from './shown-choice.tsx'

/** The interval at which the counts are requested while they are shown. */
const ASK_MS = 2000

/** The number of widths of a line. */
const WIDTHS = 4

/** The id of the chosen chart; by default, the work is shown. */
const chosenId = signal('work')

/** The shown chart, with the counts of its transitions. */
const shown = computed(() => {
  const charts = heat.value?.charts ?? []
  const counts = charts.find(({ chart }) => chart === chosenId.value) ?? charts[0]
  const drawn = hello.value?.charts.find(({ id }) => id === counts?.chart)
  return counts && drawn && { drawn, transitions: counts.transitions }
})

const marks = computed<ChartMarks>(() => {
  const { transitions = [] } = shown.value ?? {}
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
export function TaskHeat() {
  useEffect(() => {
    const ask = () => document.visibilityState === 'visible' && askHub({ type: 'heat' })
    ask()
    const timer = setInterval(ask, ASK_MS)
    return () => clearInterval(timer)
  }, [])
  if (!shown.value) {
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
  const { drawn, transitions } = shown.value
  const taken = transitions.filter(({ count }) => count > 0).length
  return (
    <div class="panel heat-panel">
      <div class="tools">
        <ShownChoice />
        <ChartChoice />
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
      <ChartPicture label={`${drawn.title}, what tasks took`} svg={drawn.svg} marks={marks.value} />
      <Transitions />
    </div>
  )
}

function ChartChoice() {
  const { charts = [] } = heat.value ?? {}
  if (charts.length < 2) return null
  return (
    <label>
      <span class="quiet">Chart</span>
      <select value={shown.value?.drawn.id} onChange={event => (chosenId.value = event.currentTarget.value)}>
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
  const { drawn, transitions = [] } = shown.value ?? {}
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
