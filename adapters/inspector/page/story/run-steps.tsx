import { computed } from '@preact/signals'
import { isInterrupted, isTerminal, stateText } from '../../../../machines/protocol/states.ts'
import type { TaskEvent } from '../../../../runtime/store/store.ts'
import type { ActorStep } from '../../feed.ts'
import { eventWords, partsText, statusMessageText } from '../../story/chart-path.ts'
import { logs, shownTaskId } from '../agent/task-log.ts'
import { hello } from '../feed/feed.ts'
import { steps, talk } from '../feed/known.ts'
import { conversation } from '../talk/conversation.ts'
import { generation, goTo, isNewest } from '../time-bar.tsx'
import { spanText } from '../wording.ts'

/** One point of a run: a message, words, a question, a step, a result, or an end. */
interface RunPoint {
  readonly key: string
  readonly kind: 'client' | 'works' | 'asks' | 'step' | 'result' | 'ended'
  readonly text: string
  /** The generation of the task from which it is there. */
  readonly generation: number
  readonly atMs: number
}

/** The points of the chosen task's run, oldest first. */
const points = computed(() => {
  const log = logs.value.get(shownTaskId.value ?? '')
  if (!log) return []
  const found: RunPoint[] = []
  let last = { generation: 0, atMs: 0 }
  const add = (point: Omit<RunPoint, 'atMs'>, atMs: number) => {
    last = { generation: point.generation, atMs: atMs || last.atMs }
    found.push({ ...point, atMs: last.atMs })
  }
  for (const item of conversation({ logs: new Map([['', log]]), talk: talk.value, spoken: [] })) {
    if (item.kind === 'message' && item.message.role === 'ROLE_USER')
      add(
        { key: item.key, kind: 'client', text: partsText(item.message.parts), generation: last.generation + 1 },
        last.atMs
      )
    if (item.kind !== 'run') continue
    for (const event of item.events) {
      const point = pointOf(event)
      if (point) add(point, timeOf(event))
    }
  }
  return withSteps(found, steps.value)
})

/** The point of an event; none for one that says nothing new. */
function pointOf(event: TaskEvent): Omit<RunPoint, 'atMs'> | undefined {
  const { generation, update } = event
  const key = String(generation)
  if ('artifactUpdate' in update)
    return update.artifactUpdate.append ? undefined : { key, kind: 'result', text: eventWords(event), generation }
  const { state } = update.statusUpdate.status
  const words = statusMessageText(event)
  if (isInterrupted(state)) return { key, kind: 'asks', text: words || stateText(state), generation }
  if (isTerminal(state)) return { key, kind: 'ended', text: eventWords(event), generation }
  return words === '' ? undefined : { key, kind: 'works', text: words, generation }
}

function timeOf({ update }: TaskEvent): number {
  return 'statusUpdate' in update ? Date.parse(update.statusUpdate.status.timestamp ?? '') || 0 : 0
}

/** The points with the steps of the work whose results were stored, each where it ended. */
function withSteps(points: readonly RunPoint[], all: readonly ActorStep[]): RunPoint[] {
  const found = [...points]
  for (const { n, atMs, kind, taskId: of, event, generation = Infinity } of all) {
    if (kind !== 'stored' || of !== shownTaskId.value) continue
    const next = found.findIndex(point => point.generation > generation || point.atMs > atMs)
    const at = next < 0 ? found.length : next
    found.splice(at, 0, {
      key: `step ${n}`,
      kind: 'step',
      text: String(event['name']),
      generation: found[at - 1]?.generation ?? 0,
      atMs
    })
  }
  return found
}

const KINDS: Readonly<Record<RunPoint['kind'], string>> = {
  client: 'you',
  works: 'says',
  asks: 'asks',
  step: 'step',
  result: 'result',
  ended: 'ended'
}

/** The run of a function as a line: its words, steps, questions and results, lit at the shown generation. */
export function RunSteps() {
  const all = points.value
  if (all.length === 0)
    return (
      <p class="empty quiet">
        {hello.value?.charts.some(({ id }) => id === 'work')
          ? 'Nothing of this task is known yet.'
          : 'The work of this agent is a function. What it says, asks and stores appears here, step by step.'}
      </p>
    )
  const now = all.findLastIndex(point => point.generation <= generation.value)
  const startMs = all.find(({ atMs }) => atMs > 0)?.atMs ?? 0
  return (
    <ol class="run-steps" aria-label="The run, step by step">
      {all.map(({ key, kind, text, generation: of, atMs }, i) => (
        <li
          key={key}
          class={`run-step run-step-${kind}${i > now ? ' run-step-later' : ''}`}
          aria-current={i === now ? 'step' : undefined}
        >
          <button
            type="button"
            class="plain"
            title="Show this moment"
            onClick={() => goTo(isNewest.peek() && i === all.length - 1 ? Infinity : of)}
          >
            <span class="run-step-kind">{KINDS[kind]}</span>
            <span class="run-step-text">{text}</span>
            <span class="quiet run-step-time">{atMs > startMs ? `+${spanText(atMs - startMs)}` : ''}</span>
          </button>
        </li>
      ))}
    </ol>
  )
}
