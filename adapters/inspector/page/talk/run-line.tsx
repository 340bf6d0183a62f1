import { isInterrupted, isTerminal, stateText } from '../../../../machines/protocol/states.ts'
import type { TaskEvent } from '../../../../runtime/store/store.ts'
import { EXAMPLE_ID } from '../../feed.ts'
import { eventWords, statusMessageText } from '../../story/chart-path.ts'
import { agent } from '../agent/agent.ts'
import { CopyId, StateBadge } from '../parts.tsx'
import { choose, contextId } from '../selection.ts'
import { countText, errorText, spanText, timeText } from '../wording.ts'
import type { Run } from './conversation.ts'
import { sendError } from './sending.ts'

/** The events of a task between two messages: one line, which unfolds. */
export function RunLine({ run, isChosen }: { readonly run: Run; readonly isChosen: boolean }) {
  const { taskId, events, state, isLast } = run
  const isAnswered = isInterrupted(state) && !isLast
  const words = events.findLast(event => isWorking(event) && statusMessageText(event) !== '')
  const span = spanMs(events)
  return (
    <div class={isChosen ? 'run run-chosen' : 'run'} data-task={taskId}>
      <details>
        <summary>
          {isAnswered ? (
            <span class="state" title={`It was ${stateText(state)}, and was answered`}>
              answered
            </span>
          ) : (
            <StateBadge state={state} />
          )}
          <span class="run-words">{words && statusMessageText(words)}</span>
          <span class="quiet">
            {countText(events.length, 'event')}
            {span > 0 ? `, ${spanText(span)}` : ''}
          </span>
        </summary>
        <ol>
          {events.map(event => (
            <li key={event.generation}>
              <span class="quiet mono">{timeOf(event)}</span>
              <span>{eventWords(event)}</span>
            </li>
          ))}
        </ol>
      </details>
      {taskId !== EXAMPLE_ID && (
        <span class="run-tools">
          <span class="quiet">task</span> <CopyId what="task" id={taskId} />
          {!isChosen && (
            <button type="button" class="plain" onClick={() => choose(contextId.peek(), taskId)}>
              Show in the other parts
            </button>
          )}
          {isLast && !isTerminal(state) && (
            <button type="button" onClick={() => cancel(taskId)}>
              Cancel the task
            </button>
          )}
        </span>
      )}
    </div>
  )
}

function cancel(id: string): void {
  agent
    .peek()
    ?.cancelTask({ id })
    .catch((error: unknown) => (sendError.value = errorText(error)))
}

function isWorking({ update }: TaskEvent): boolean {
  return 'statusUpdate' in update && update.statusUpdate.status.state === 'TASK_STATE_WORKING'
}

function timeOf({ update }: TaskEvent): string {
  const atMs = 'statusUpdate' in update ? Date.parse(update.statusUpdate.status.timestamp ?? '') : NaN
  return Number.isNaN(atMs) ? '' : timeText(atMs)
}

/** The time from the first to the last status. */
function spanMs(events: readonly TaskEvent[]): number {
  const times = events
    .flatMap(({ update }) => ('statusUpdate' in update ? [Date.parse(update.statusUpdate.status.timestamp ?? '')] : []))
    .filter(time => !Number.isNaN(time))
  return Math.max(0, (times.at(-1) ?? 0) - (times[0] ?? 0))
}
