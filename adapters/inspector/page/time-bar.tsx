import { computed, effect, signal } from '@preact/signals'
import { isTerminal } from '../../../machines/protocol/states.ts'
import type { ActorStep } from '../feed.ts'
import { eventWords } from '../story/chart-path.ts'
import { firstGeneration, historyAt, lastGeneration, log, said, taskAt } from './agent/task-log.ts'
import { exampleUrl, storyUrl } from './page.ts'
import { taskId } from './selection.ts'

/** The chosen generation; `undefined` for the newest. */
const chosen = signal<number | undefined>(undefined)

/** The generations at which the chosen task can be shown; 0 to 0 without a task. */
export const range = computed(() =>
  log.value ? { first: firstGeneration(log.value), last: lastGeneration(log.value) } : { first: 0, last: 0 }
)

/** The generation at which every view shows the chosen task. */
export const generation = computed(() => Math.min(chosen.value ?? range.value.last, range.value.last))

/** Whether the views follow the newest generation. */
export const isNewest = computed(() => chosen.value === undefined)

/** The chosen task at that generation. */
export const taskThen = computed(() => log.value && taskAt(log.value, generation.value))

/** The messages of the chosen task at that generation. */
export const historyThen = computed(() => (log.value ? historyAt(log.value, said.value, generation.value) : []))

/** The event of that generation; `undefined` if it is older than those that are shown one by one. */
const eventThen = computed(() => log.value?.events.find(event => event.generation === generation.value))

/** Shows the task at a generation; beyond the last one, follows the newest. */
export function goTo(to: number): void {
  const { first, last } = range.peek()
  chosen.value = to >= last ? undefined : Math.max(first, to)
}

/** Shows the task some generations later or, if negative, earlier. */
export function step(by: number): void {
  goTo(generation.peek() + by)
}

/** Resets to the newest generation when another task is chosen. */
export function startAtNewest(): void {
  effect(() => {
    void taskId.value
    chosen.value = undefined
  })
}

/**
 * The steps up to the shown generation: up to the last one of it or of an earlier one. Steps without a known generation
 * belong to the next known one.
 */
export function stepsUntilThen(steps: readonly ActorStep[]): readonly ActorStep[] {
  if (isNewest.value) return steps
  const last = steps.findLastIndex(({ generation: of }) => of !== undefined && of <= generation.value)
  return steps.slice(0, last + 1)
}

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
        aria-label="One moment back"
        title="One moment back ( , )"
        disabled={generation.value <= first}
        onClick={() => step(-1)}
      >
        ◀
      </button>
      <input
        type="range"
        aria-label="Moment"
        aria-valuetext={`${generation.value}, ${words}`}
        min={first}
        max={last}
        value={generation.value}
        onInput={event => goTo(Number(event.currentTarget.value))}
      />
      <button
        type="button"
        aria-label="One moment on"
        title="One moment on ( . )"
        disabled={generation.value >= last}
        onClick={() => step(1)}
      >
        ▶
      </button>
      <span class="generation-now" title={`Generation ${generation.value} of the task`}>
        <span class="wide">moment </span>
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
