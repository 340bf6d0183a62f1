import { computed } from '@preact/signals'
import { stateName, innermost, type ChartPath } from '../../story/chart-path.ts'
import { hello } from '../feed/feed.ts'
import { missedSteps } from '../feed/known.ts'
import { copyText } from '../parts.tsx'
import { taskId } from '../selection.ts'
import { isNewest } from '../time-bar.tsx'
import { eventText } from '../wording.ts'
import {
  choice,
  chosenKey,
  chosenSteps,
  choices,
  choiceText,
  isRebuilt,
  pathOfChoice,
  unseenText
} from './chart-choice.ts'
import { ChartPicture, type ChartMarks } from './chart-picture.tsx'

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
  if (!chosen)
    return (
      <p class="empty">
        {hello.value ? 'This agent has no charts: its work is a function.' : 'Waiting for the agent…'}
      </p>
    )
  const { chart } = chosen
  return (
    <div class="panel chart-panel">
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
      </div>
      <ChartPicture label={`${chart.title}. Active: ${activeText(path.value)}`} svg={chart.svg} marks={marks.value} />
      <div class="path" aria-live="polite">
        {path.value.active.length > 0 && <span class="path-now">{`Now: ${activeText(path.value)}`}</span>}
        <Trail />
        <span class="tools-gap" />
        <ChartLegend />
      </div>
    </div>
  )
}

/** The picture as shown, with its marks. */
function shownSvg(svg: string): string {
  const shown = document.querySelector<SVGSVGElement>('.chart-panel .chart-sheet > svg')
  return shown ? new XMLSerializer().serializeToString(shown) : svg
}

function activeText({ active }: ChartPath): string {
  return innermost(active).map(stateName).join(', ') || 'nothing'
}

/** The number of stops that are listed. */
const LAST_STOPS = 12

function Trail() {
  const { stops } = path.value
  const { chart, actor } = choice.value ?? {}
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
