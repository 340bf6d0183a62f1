import { isTerminal } from '../../../../machines/protocol/states.ts'
import { eventWords } from '../../story/chart-path.ts'
import { exampleUrl, storyUrl } from '../page-settings.ts'
import { taskId } from '../selection.ts'
import { eventThen, generation, goTo, isNewest, range, step, taskThen } from './generation.ts'

/**
 * One slider over chart, sequence, talk and timeline: goes to any generation of the chosen task, and names the event
 * that led there.
 */
export function TimeBar() {
  const { first, last } = range.value
  if (last === 0) return null
  // Within the range, a generation without an event is that of a client's message.
  const other = generation.value > first ? 'message of the client' : ''
  const words = eventThen.value ? eventWords(eventThen.value) : other
  return (
    <div class="time-bar" role="group" aria-label="Time">
      <button
        type="button"
        aria-label="One event back"
        title="One event back ( , )"
        disabled={generation.value <= first}
        onClick={() => step(-1)}
      >
        ◀
      </button>
      <input
        type="range"
        aria-label="Event"
        aria-valuetext={`${generation.value}, ${words}`}
        min={first}
        max={last}
        value={generation.value}
        onInput={event => goTo(Number(event.currentTarget.value))}
      />
      <button
        type="button"
        aria-label="One event on"
        title="One event on ( . )"
        disabled={generation.value >= last}
        onClick={() => step(1)}
      >
        ▶
      </button>
      <span class="generation-now" title={`Generation ${generation.value} of the task`}>
        <span class="wide">event </span>
        {generation.value}
        <span class="wide"> of </span>
        <span class="narrow" aria-hidden="true">
          /
        </span>
        {last}
      </span>
      <span class="event-then" title={words}>
        {words}
      </span>
      <button
        type="button"
        aria-label="Newest"
        title="Newest"
        aria-pressed={isNewest.value}
        onClick={() => goTo(Infinity)}
      >
        <span class="wide">Newest</span>
        <span class="narrow">⇥</span>
      </button>
      {taskId.value !== undefined && (
        <a
          class="save-story"
          aria-label="Save story"
          href={storyUrl(taskId.value)}
          download
          title="One file with the chart, the sequence and the talk of this task"
        >
          <span class="wide">Save story</span>
          <span class="narrow">⤓</span>
        </a>
      )}
      {taskId.value !== undefined && taskThen.value && isTerminal(taskThen.value.status.state) && (
        <a
          class="save-example wide"
          href={exampleUrl(taskId.value)}
          download
          title="A file to put beside agent.ts, as agent.example.json: pages show it as an example before the first task"
        >
          Save as example
        </a>
      )}
    </div>
  )
}
