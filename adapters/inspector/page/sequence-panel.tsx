import { computed, signal } from '@preact/signals'
import { parseType } from '../../../machines/xstate-names.ts'
import type { ActorRow, ActorStep } from '../feed.ts'
import { innermost, stateName } from '../story/chart-path.ts'
import { hello } from './feed/feed.ts'
import { actors, missedSteps, steps, taskChanges, tasks } from './feed/known.ts'
import { mcpSteps } from './frames-panel.tsx'
import { Paste, sendLine } from './parts.tsx'
import { contextId, taskId } from './selection.ts'
import { isNewest, stepsUntilThen } from './time-bar.tsx'
import { VirtualList } from './virtual-list.tsx'
import { countText, eventText, frameText, jsonText, shortId, timeText } from './wording.ts'

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

/** The width of a lane, in pixels. */
const LANE_WIDTH = 136

/** The width of the time column, in pixels. */
const TIME_WIDTH = 96

const HEIGHT = 30

const LINE = 21

/** One step: an arrow from the sender's lane to another, or a dot within one lane. */
function StepArrow({
  step,
  name,
  sender,
  lanes
}: {
  readonly step: ActorStep
  readonly name: string
  readonly sender: string
  readonly lanes: readonly Lane[]
}) {
  const { kind, to, states = [] } = step
  const place = (key: string) => lanes.findIndex(lane => lane.key === key) * LANE_WIDTH + LANE_WIDTH / 2
  const target = place(to)
  const source = place(sender)
  const isWithin = source === target
  const direction = target > source ? 1 : -1
  const words = kind === 'microstep' ? `→ ${innermost(states).map(stateName).join(', ')}` : name
  return (
    <>
      <span class="step-time mono" style={{ width: `${TIME_WIDTH}px` }}>
        {timeText(step.atMs)}
      </span>
      <svg class={`step step-${kind}`} width={lanes.length * LANE_WIDTH} height={HEIGHT} aria-hidden="true">
        {lanes.map(({ key }) => (
          <line key={key} class="step-life" x1={place(key)} x2={place(key)} y1={0} y2={HEIGHT} />
        ))}
        {isWithin ? (
          <circle class="step-dot" cx={target} cy={HEIGHT / 2} r={4} />
        ) : (
          <>
            <line class="step-line" x1={source} x2={target - direction * 6} y1={LINE} y2={LINE} />
            <polygon
              class="step-head"
              points={`${target},${LINE} ${target - direction * 7},${LINE - 4} ${target - direction * 7},${LINE + 4}`}
            />
          </>
        )}
      </svg>
      <span class={`step-words step-words-${kind}`} style={wordsPlace(isWithin, source, target, lanes.length)}>
        {words}
      </span>
      <span class="unseen step-route">
        {isWithin ? titleOf(lanes, to) : `${titleOf(lanes, sender)} → ${titleOf(lanes, to)}`}
      </span>
    </>
  )
}

/** Above the middle of the arrow, or beside the dot. */
function wordsPlace(isWithin: boolean, source: number, target: number, lanes: number): Record<string, string> {
  if (!isWithin) {
    const left = Math.min(source, target)
    return {
      left: `${TIME_WIDTH + left + 8}px`,
      width: `${Math.abs(target - source) - 16}px`,
      textAlign: 'center',
      top: '2px'
    }
  }
  const isLast = target > (lanes - 1) * LANE_WIDTH
  return isLast
    ? {
        right: `calc(100% - ${TIME_WIDTH + target - 10}px)`,
        maxWidth: `${LANE_WIDTH * Math.max(1, lanes - 1)}px`,
        textAlign: 'right',
        top: '6px'
      }
    : { left: `${TIME_WIDTH + target + 10}px`, maxWidth: `${LANE_WIDTH}px`, top: '6px' }
}

function titleOf(lanes: readonly Lane[], key: string): string {
  const lane = lanes.find(lane => lane.key === key)
  return lane && lane.kind !== 'child' ? lane.kind : shortId(lane?.title ?? key)
}

/** The lane of the client. */
const CLIENT = 'client'

/** The lane of the runtime: starting tasks, deadlines, recovery. */
const RUNTIME = 'runtime'

/** A column of the sequence: an actor, the client, or the runtime. */
interface Lane {
  /** The actor's sessionId, `client`, or `runtime`. */
  readonly key: string
  readonly title: string
  readonly kind: typeof CLIENT | typeof RUNTIME | ActorRow['kind']
}

const ORDER: readonly Lane['kind'][] = [CLIENT, RUNTIME, 'context', 'negotiation', 'task', 'work', 'child']

/** A filter of steps. */
interface SequenceFilter {
  /** Only steps of this task. */
  readonly taskId: string | undefined
  /** Includes microsteps. */
  readonly withMicrosteps: boolean
  /** Text that the event's JSON contains. */
  readonly search: string
}

/** The filtered steps. */
function shownSteps(
  steps: readonly ActorStep[],
  { taskId, withMicrosteps, search }: SequenceFilter,
  actors: readonly ActorRow[]
): ActorStep[] {
  const wanted = search.toLowerCase()
  const concerned = taskId === undefined ? steps : stepsAbout(taskId, steps, actors)
  return concerned.filter(
    ({ kind, event }) =>
      (kind !== 'microstep' || withMicrosteps) &&
      (wanted === '' || JSON.stringify(event).toLowerCase().includes(wanted))
  )
}

/** The steps of a task's actors, and those of the context meanwhile, beginning with the message that led to them. */
function stepsAbout(taskId: string, steps: readonly ActorStep[], actors: readonly ActorRow[]): ActorStep[] {
  const taskOf = new Map(actors.map(actor => [actor.sessionId, taskOfActor(actor)]))
  const tasksOf = ({ taskId, from, to }: ActorStep) =>
    [taskId, taskOf.get(to), from === undefined ? undefined : taskOf.get(from)].filter(id => id !== undefined)
  const isAbout = (step: ActorStep) => tasksOf(step).includes(taskId)
  const first = steps.findIndex(isAbout)
  const last = steps.findLastIndex(isAbout)
  const message = steps
    .slice(0, Math.max(0, first))
    .findLastIndex(({ from, kind }) => from === undefined && kind === 'event')
  return steps
    .slice(message < 0 ? Math.max(0, first) : message, last + 1)
    .filter(step => isAbout(step) || tasksOf(step).length === 0)
}

/** A negotiation by a function is named after the task that it may open. */
function taskOfActor({ taskId, kind, name }: ActorRow): string | undefined {
  return taskId ?? (kind === 'negotiation' && name.endsWith('?') ? name.slice(0, -1) : undefined)
}

/** The columns for steps: the client, the runtime, then the involved actors, from the context to invoked actors. */
function lanesOf(steps: readonly ActorStep[], actors: readonly ActorRow[]): Lane[] {
  const present = new Set(steps.flatMap(step => [senderOf(step, actors), step.to]))
  const known = new Map(actors.map(actor => [actor.sessionId, actor]))
  const lanes = Array.from(present, key => laneOf(key, known.get(key)))
  return lanes.toSorted((one, other) => ORDER.indexOf(one.kind) - ORDER.indexOf(other.kind))
}

function laneOf(key: string, actor: ActorRow | undefined): Lane {
  if (key === CLIENT || key === RUNTIME) return { key, title: key, kind: key }
  return { key, title: actor?.source ?? actor?.name ?? key, kind: actor?.kind ?? 'child' }
}

/** The events that a client's requests become. */
const SAID: ReadonlySet<string> = new Set([
  'request.received',
  'message.received',
  'message.steered',
  'message.queued',
  'task.cancel',
  'authorization.received'
])

/**
 * The sender of a step's event: an actor's sessionId, or a lane. An event from outside of the actors belongs to the
 * client or the runtime. It may also be a word of work to its task, or be passed on from a task to its work, or from
 * work to an invoked actor.
 */
function senderOf({ kind, from, to, event: { type }, taskId }: ActorStep, actors: readonly ActorRow[]): string {
  if (kind !== 'event') return to
  if (from !== undefined) return from
  const receiver = actors.find(({ sessionId }) => sessionId === to)
  if (receiver?.kind === 'work' || receiver?.kind === 'child') return receiver.parent ?? RUNTIME
  if (type.startsWith('work.'))
    return actors.findLast(actor => actor.kind === 'work' && actor.taskId === taskId)?.sessionId ?? RUNTIME
  return SAID.has(type) ? CLIENT : RUNTIME
}

/** The name of a step's event. That of the end of an actor does not repeat who it is. */
function stepText({ event: { type } }: ActorStep, actors: readonly ActorRow[]): string {
  const { kind, of, id } = parseType(type) ?? {}
  if (of !== 'actor' || !actors.some(({ name }) => name === id)) return eventText(type)
  return kind === 'done' ? 'is done' : 'fails'
}
