import { computed, signal } from '@preact/signals'
import type { ActorStep } from '../../feed.ts'
import { hello } from '../feed/feed.ts'
import { actors, missedSteps, steps, taskChanges, tasks } from '../feed/known.ts'
import { mcpSteps } from '../frames/frame-facts.ts'
import { Paste, sendLine } from '../parts.tsx'
import { contextId, taskId } from '../selection.ts'
import { isNewest, stepsUntilThen } from '../time-bar.tsx'
import { VirtualList } from '../virtual-list.tsx'
import { countText, frameText, jsonText, shortId, timeText } from '../wording.ts'
import { lanesOf, senderOf, shownSteps, stepText } from './lanes.ts'
import { StepArrow, LANE_WIDTH, TIME_WIDTH } from './step-arrow.tsx'

const ROW_HEIGHT = 30

const onlyTask = signal(true)
const withMicrosteps = signal(false)
const withCalls = signal(true)
const search = signal('')
const chosen = signal<ActorStep | undefined>(undefined)

const shown = computed(() =>
  withCallsBetween(
    shownSteps(
      stepsUntilThen(steps.value),
      { taskId: onlyTask.value ? taskId.value : undefined, withMicrosteps: withMicrosteps.value, search: search.value },
      actors.value
    )
  )
)

/** Steps with the calls over MCP about the same tasks, in the order of time. */
function withCallsBetween(shown: readonly ActorStep[]): readonly ActorStep[] {
  if (!withCalls.value) return shown
  void taskChanges.value
  const wanted = search.value.toLowerCase()
  const until = isNewest.value ? Infinity : (shown.at(-1)?.atMs ?? 0)
  const calls = mcpSteps(id =>
    onlyTask.value && taskId.value !== undefined ? id === taskId.value : tasks.get(id)?.contextId === contextId.value
  ).filter(({ atMs, event }) => atMs <= until && JSON.stringify(event).toLowerCase().includes(wanted))
  return calls.length === 0 ? shown : [...shown, ...calls].toSorted((a, b) => a.atMs - b.atMs || rankOf(a) - rankOf(b))
}

/** At the same time a request comes first, and an answer last. */
function rankOf({ n, to }: ActorStep): number {
  if (n > 0) return 0
  return to === 'runtime' ? -1 : 1
}

const lanes = computed(() => lanesOf(shown.value, actors.value))

/** The events between the actors of the context, as a sequence diagram. */
export function SequencePanel() {
  return (
    <div class="panel sequence-panel">
      <div class="tools">
        <input
          type="search"
          placeholder="Search events"
          aria-label="Search events"
          value={search.value}
          onInput={event => (search.value = event.currentTarget.value)}
        />
        <label>
          <input
            type="checkbox"
            checked={onlyTask.value}
            onChange={event => (onlyTask.value = event.currentTarget.checked)}
          />{' '}
          only this task
        </label>
        <label>
          <input
            type="checkbox"
            checked={withMicrosteps.value}
            onChange={event => (withMicrosteps.value = event.currentTarget.checked)}
          />{' '}
          chart steps
        </label>
        <label>
          <input
            type="checkbox"
            checked={withCalls.value}
            onChange={event => (withCalls.value = event.currentTarget.checked)}
          />{' '}
          MCP calls
        </label>
        <span class="tools-gap" />
        <span class="quiet">
          {missedSteps.value > 0
            ? `${countText(shown.value.length, 'step')}, ${missedSteps.value} missed`
            : countText(shown.value.length, 'step')}
        </span>
      </div>
      <VirtualList
        label="Steps"
        items={shown.value}
        keyOf={stepKey}
        heightOf={() => ROW_HEIGHT}
        activeKey={chosen.value && stepKey(chosen.value)}
        follows
        choose={step => (chosen.value = step)}
        row={step => (
          <StepArrow
            step={step}
            name={stepText(step, actors.value)}
            sender={senderOf(step, actors.value)}
            lanes={lanes.value}
          />
        )}
        minWidth={TIME_WIDTH + lanes.value.length * LANE_WIDTH}
        head={<Heads />}
        empty={
          <>
            <p>
              No steps were recorded yet. Send a message to see the events between the actors, under Talk or in a
              terminal:
            </p>
            {hello.value && <Paste line={sendLine(hello.value)} />}
          </>
        }
      />
      {chosen.value && <StepDetail step={chosen.value} />}
    </div>
  )
}

function stepKey({ n }: ActorStep): string {
  return String(n)
}

function Heads() {
  return (
    <div class="lanes" aria-hidden="true" style={{ minWidth: `${TIME_WIDTH + lanes.value.length * LANE_WIDTH}px` }}>
      <span class="lane-time" style={{ width: `${TIME_WIDTH}px` }} />
      {lanes.value.map(({ key, title, kind }) => (
        <span key={key} class={`lane lane-${kind}`} style={{ width: `${LANE_WIDTH}px` }} title={`${title} (${key})`}>
          <b>{kind === 'child' ? title : kind}</b>
          {kind === 'child' ? <span>invoked</span> : title !== kind && <span>{shortId(title)}</span>}
        </span>
      ))}
    </div>
  )
}

function StepDetail({ step }: { readonly step: ActorStep }) {
  const { n, atMs, kind, to, event, states, transitions, generation } = step
  const nameOf = (key: string) => {
    const actor = actors.value.find(({ sessionId }) => sessionId === key)
    return actor?.source ?? actor?.name ?? key
  }
  return (
    <aside class="detail" aria-label="The chosen step">
      <header>
        <b class="mono">{stepText(step, actors.value)}</b>
        <span class="quiet">
          {`${n < 0 ? String(event['connection']) : `step ${n}, ${kind}`}, ${timeText(atMs)}${generation === undefined ? '' : `, generation ${generation}`}`}
        </span>
        <span class="tools-gap" />
        <button type="button" class="plain" aria-label="Close" onClick={() => (chosen.value = undefined)}>
          ✕
        </button>
      </header>
      <p class="quiet">{kind === 'event' ? `${nameOf(senderOf(step, actors.value))} → ${nameOf(to)}` : nameOf(to)}</p>
      {transitions && transitions.length > 0 && <p>{`Took: ${transitions.join('; ')}`}</p>}
      {states && <p>{`In: ${states.join(', ')}`}</p>}
      {event.cut === true && <p class="quiet">The rest of this event is larger than 4 kB and is not shown.</p>}
      <pre>{n < 0 ? frameText(String(event['frame'])) : jsonText(event)}</pre>
    </aside>
  )
}
