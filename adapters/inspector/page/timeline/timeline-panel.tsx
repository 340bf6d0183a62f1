import { computed, effect, signal } from '@preact/signals'
import type { TaskEvent } from '../../../../runtime/store/store.ts'
import type { Step } from '../../feed.ts'
import { firstGeneration, historyAt, lastGeneration, taskAt } from '../agent/task-events.ts'
import { log, logError, said } from '../agent/task-log.ts'
import { choice, chosenSteps } from '../chart/chart-choice.ts'
import { pathMarks } from '../chart/chart-panel.tsx'
import { pathOf } from '../chart/chart-path.ts'
import { ChartPicture } from '../chart/chart-picture.tsx'
import { ArtifactsView, MessageView } from '../content/parts-view.tsx'
import { stateText } from '../frame/wording.ts'
import { taskId } from '../selection.ts'
import { StateBadge } from '../state-badge.tsx'
import { VirtualList } from '../virtual-list.tsx'

const EVENT_HEIGHT = 30

/** The chosen generation; `undefined` for the newest. */
const chosen = signal<number | undefined>(undefined)

const range = computed(() => (log.value ? { first: firstGeneration(log.value), last: lastGeneration(log.value) } : { first: 0, last: 0 }))
const generation = computed(() => Math.min(chosen.value ?? range.value.last, range.value.last))
const task = computed(() => log.value && taskAt(log.value, generation.value))
const history = computed(() => (log.value ? historyAt(log.value, said.value, generation.value) : []))
const seen = computed(() => seenUntil(chosenSteps.value, generation.value, generation.value === range.value.last))
const marks = computed(() => pathMarks(pathOf(seen.value)))

/** Resets to the newest generation when another task is chosen. */
export function startAtNewest(): void {
  effect(() => {
    void taskId.value
    chosen.value = undefined
  })
}

/** The task by generation: chart, status, artifacts and history at that time. */
export function TimelinePanel() {
  if (logError.value !== undefined) return <p class="empty" role="alert">{logError.value}</p>
  if (!log.value || range.value.last === 0) return <p class="empty">Choose a task on the left to see it at any of its generations.</p>
  const { first, last } = range.value
  const move = (to: number) => (chosen.value = to >= last ? undefined : Math.max(first, to))
  return (
    <div class="panel timeline-panel">
      <div class="tools">
        <button type="button" aria-label="One generation back" disabled={generation.value <= first} onClick={() => move(generation.value - 1)}>◀</button>
        <input type="range" aria-label="Generation" aria-valuetext={valueText()} min={first} max={last} value={generation.value} onInput={event => move(Number(event.currentTarget.value))} />
        <button type="button" aria-label="One generation on" disabled={generation.value >= last} onClick={() => move(generation.value + 1)}>▶</button>
        <span class="generation-now">{`generation ${generation.value} of ${last}`}</span>
        <button type="button" aria-pressed={chosen.value === undefined} onClick={() => (chosen.value = undefined)}>Newest</button>
      </div>
      <div class="timeline">
        <VirtualList label="Events" items={log.value.events} keyOf={eventKey} heightOf={() => EVENT_HEIGHT} activeKey={String(generation.value)}
          choose={event => move(event.generation)} row={event => <EventLine event={event} />} empty={<p>No events.</p>} />
        <div class="then">
          <p class="then-state" aria-live="polite">{task.value && <StateBadge state={task.value.status.state} />} <span class="quiet">{task.value?.status.timestamp ?? ''}</span></p>
          <ThenChart />
          <section aria-label="Artifacts then">
            <h3>Artifacts</h3>
            {task.value?.artifacts ? <ArtifactsView artifacts={task.value.artifacts} /> : <p class="quiet">None yet.</p>}
          </section>
          <section aria-label="History then">
            <h3>History</h3>
            {history.value.length === 0 ? <p class="quiet">Nothing was said yet.</p> : history.value.map(message => <MessageView key={message.messageId} message={message} />)}
          </section>
        </div>
      </div>
    </div>
  )
}

function ThenChart() {
  const { chart } = choice.value ?? {}
  if (!chart) return null
  if (seen.value.length === 0) return <p class="quiet then-unseen">{`The state of ${chart.title} at generation ${generation.value} was not recorded: the hub records only while a page is open, and keeps the newest 2,000 steps.`}</p>
  return <ChartPicture label={`${chart.title} at generation ${generation.value}`} svg={chart.svg} marks={marks.value} scrolls />
}

function valueText(): string {
  return `${generation.value}, ${task.value ? stateText(task.value.status.state) : ''}`
}

function eventKey({ generation }: TaskEvent): string {
  return String(generation)
}

function EventLine({ event: { generation, update } }: { readonly event: TaskEvent }) {
  return (
    <>
      <span class="mono generation">{generation}</span>
      {'statusUpdate' in update ? <StateBadge state={update.statusUpdate.status.state} /> : <span class="event-artifact">{artifactText(update.artifactUpdate)}</span>}
      {'statusUpdate' in update && <span class="event-words quiet">{wordsIn(update.statusUpdate.status.message?.parts)}</span>}
    </>
  )
}

function artifactText({ artifact, append }: { readonly artifact: { readonly name?: string; readonly artifactId: string }; readonly append?: boolean }): string {
  return `${append ? '+ ' : ''}${artifact.name || artifact.artifactId}`
}

function wordsIn(parts: readonly object[] = []): string {
  return parts.map(part => ('text' in part ? String(part.text) : '…')).join(' ')
}

/**
 * The recorded steps up to a generation: up to the last one of it or of an earlier one. Steps without a known generation belong to the
 * next known one. `isNewest`: all steps.
 */
function seenUntil(steps: readonly Step[], generation: number, isNewest: boolean): readonly Step[] {
  if (isNewest) return steps
  const last = steps.findLastIndex(step => step.generation !== undefined && step.generation <= generation)
  return steps.slice(0, last + 1)
}
