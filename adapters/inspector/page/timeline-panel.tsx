import { computed } from '@preact/signals'
import type { TaskEvent } from '../../../runtime/store/store.ts'
import { eventWords, statusMessageText } from '../story/chart-path.ts'
import { log, logError } from './agent/task-log.ts'
import { choice, chosenSteps, pathMarks, unseenText } from './chart/chart-panel.tsx'
import { ChartPicture } from './chart/chart-picture.tsx'
import { chartPathOf } from './chart/walked-path.ts'
import { ArtifactsView, MessageView } from './content/parts-view.tsx'
import { StateBadge } from './parts.tsx'
import { generation, goTo, historyThen, range, stepsUntilThen, taskThen } from './time-bar.tsx'
import { VirtualList } from './virtual-list.tsx'
import { dateText } from './wording.ts'

const EVENT_HEIGHT = 30

const marks = computed(() => pathMarks(chartPathOf(stepsUntilThen(chosenSteps.value))))

/** The task by generation: chart, status, artifacts and history at that time. */
export function TimelinePanel() {
  if (logError.value !== undefined)
    return (
      <p class="empty" role="alert">
        {logError.value}
      </p>
    )
  if (!log.value || range.value.last === 0)
    return (
      <p class="empty">
        Choose a task in the list to see it at any of its generations. A message under Talk opens one.
      </p>
    )
  return (
    <div class="panel timeline-panel">
      <div class="timeline">
        <VirtualList
          label="Events"
          items={log.value.events}
          keyOf={eventKey}
          heightOf={() => EVENT_HEIGHT}
          activeKey={String(generation.value)}
          choose={event => goTo(event.generation)}
          row={event => <EventLine event={event} />}
          empty={<p>No events.</p>}
        />
        <div class="then">
          <p class="then-state" aria-live="polite">
            {taskThen.value && <StateBadge state={taskThen.value.status.state} />}{' '}
            <span class="quiet">{dateText(taskThen.value?.status.timestamp)}</span>
          </p>
          <ThenChart />
          <section aria-label="Artifacts then">
            <h2>Artifacts</h2>
            {taskThen.value?.artifacts ? (
              <ArtifactsView artifacts={taskThen.value.artifacts} />
            ) : (
              <p class="quiet">None yet.</p>
            )}
          </section>
          <section aria-label="History then">
            <h2>History</h2>
            {historyThen.value.length === 0 ? (
              <p class="quiet">Nothing was said yet.</p>
            ) : (
              historyThen.value.map(message => <MessageView key={message.messageId} message={message} />)
            )}
          </section>
        </div>
      </div>
    </div>
  )
}

function ThenChart() {
  const { chart } = choice.value ?? {}
  if (!chart) return null
  if (stepsUntilThen(chosenSteps.value).length === 0) return <p class="quiet then-unseen">{unseenText(chart.title)}</p>
  return (
    <ChartPicture
      label={`${chart.title} at generation ${generation.value}`}
      svg={chart.svg}
      marks={marks.value}
      scrolls
    />
  )
}

function eventKey({ generation }: TaskEvent): string {
  return String(generation)
}

function EventLine({ event }: { readonly event: TaskEvent }) {
  const { generation, update } = event
  return (
    <>
      <span class="mono generation">{generation}</span>
      {'statusUpdate' in update ? (
        <StateBadge state={update.statusUpdate.status.state} />
      ) : (
        <span class="event-artifact">{eventWords(event)}</span>
      )}
      <span class="event-words quiet">{statusMessageText(event)}</span>
    </>
  )
}
