import { decode } from '../../../machines/protocol/codec/decode.ts'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import {
  MessageSchema,
  StreamResponseSchema,
  type Message,
  type Part,
  type Task
} from '../../../machines/protocol/objects.ts'
import { taskMachine } from '../../../machines/task.machine.ts'
import type { Scope } from '../../../runtime/store/rows.ts'
import type { TaskEvent } from '../../../runtime/store/store.ts'
import { readAllEvents, readWhole } from '../../../runtime/streams/task-stream.ts'
import type { Observation } from '../../../runtime/telemetry-port.ts'
import { outlineOf } from '../../drawing/outline.ts'
import { EXAMPLE_ID, type ActorStep, type Chart, type RecordedExample } from '../feed.ts'
import type { Recorder } from '../recorder/recorder.ts'
import { type Redact, type SeenStep, shownStep } from '../recorder/seen-step.ts'
import { type ChartNames, rebuiltSteps } from './chart-path.ts'
import { type LitStep, litSteps } from './moments.ts'
import { storyHtml } from './story-file.ts'

/** The maximum length of a recorded example. */
export const LONGEST_EXAMPLE = 1024 * 1024

const HERE = { taskId: EXAMPLE_ID, contextId: EXAMPLE_ID }

/** A task as a recorded example, as JSON text: what was said, its events, and its steps in the chart of the work. */
export function exampleText(
  { status, history = [] }: Task,
  events: readonly TaskEvent[],
  steps: readonly SeenStep[],
  redact: Redact
): string {
  const messages = status.message ? [...history, status.message] : history
  const message = (one: Message): Message => ({ ...one, ...HERE, parts: withoutSecrets(one.parts, redact) })
  const example: RecordedExample = {
    type: 'example',
    said: messages.map(message),
    events: events.map(({ generation, update }) => ({ taskId: EXAMPLE_ID, generation, update: updateHere(update) })),
    steps: steps
      .filter(({ kind, to }) => kind === 'stored' || (kind === 'microstep' && to.chart === 'work'))
      .map(step => ({ ...shownStep(step, redact), ...HERE, to: EXAMPLE_ID }))
  }
  return `${JSON.stringify(example)}\n`

  function updateHere(update: TaskEvent['update']): TaskEvent['update'] {
    if ('artifactUpdate' in update) {
      const { artifact } = update.artifactUpdate
      const parts = withoutSecrets(artifact.parts, redact)
      return { artifactUpdate: { ...update.artifactUpdate, ...HERE, artifact: { ...artifact, parts } } }
    }
    const { status: then } = update.statusUpdate
    const said = then.message && { message: message(then.message) }
    return { statusUpdate: { ...update.statusUpdate, ...HERE, status: { ...then, ...said } } }
  }
}

function withoutSecrets(parts: readonly Part[], redact: Redact): Part[] {
  return parts.map(part => {
    if ('text' in part) return { ...part, text: String(redact(part.text)) }
    return 'data' in part ? ({ ...part, data: redact(part.data) } as Part) : part
  })
}

/** Reads a recorded example. Throws TypeError for what is none, with the reason. */
export function readExample(text: string): RecordedExample {
  if (text.length > LONGEST_EXAMPLE)
    throw new TypeError(`A recorded example has at most ${LONGEST_EXAMPLE} characters, not ${text.length}.`)
  try {
    const value: unknown = JSON.parse(text)
    const { said, events, steps } = isObject(value) ? value : {}
    return {
      type: 'example',
      said: listOf('said', said).map(one => decode(MessageSchema, one)),
      events: listOf('events', events).map(readEvent),
      steps: listOf('steps', steps).map(readStep)
    }
  } catch (error) {
    throw new TypeError(`This is no recorded example: ${(error as Error).message} Save it again on the page.`, {
      cause: error
    })
  }
}

function listOf(name: string, value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new TypeError(`${name} is no list.`)
  return value
}

function readEvent(value: unknown): TaskEvent {
  const { generation, update } = isObject(value) ? value : {}
  const event = decode(StreamResponseSchema, update)
  if (!Number.isSafeInteger(generation) || !('statusUpdate' in event || 'artifactUpdate' in event))
    throw new TypeError('an event has no generation, or is no event of a task.')
  return { taskId: EXAMPLE_ID, generation: generation as number, update: event }
}

function readStep(value: unknown): ActorStep {
  const step = isObject(value) ? value : {}
  const { n, atMs, event, states = [], transitions = [] } = step
  const isText = (one: unknown) => typeof one === 'string'
  const isKnown =
    typeof n === 'number' &&
    typeof atMs === 'number' &&
    isObject(event) &&
    isText(event['type']) &&
    [states, transitions].every(names => Array.isArray(names) && names.every(isText))
  if (!isKnown) throw new TypeError('a step has no number, time, event or states.')
  return step as unknown as ActorStep
}

/** The states and transitions of taskchart's own chart of a task. */
export function taskChartNames(): ChartNames {
  const { states, transitions } = outlineOf(taskMachine)
  return { states: new Set(states.map(({ id }) => id)), transitions: transitions.map(({ name }) => name) }
}

/** The steps of a task in taskchart's own chart of it, rebuilt from its events. */
export function rebuiltTaskSteps(events: readonly TaskEvent[]): LitStep[] {
  return litSteps(rebuiltSteps(events, taskChartNames()))
}

/** Where the story of a watched agent comes from. */
interface StorySource {
  readonly agent: string
  readonly store: Observation['store']
  readonly recorder: Recorder
  readonly charts: readonly Chart[]
  readonly redact: Redact
}

/** A task with its events and recorded steps; `undefined` if it is not in this scope. */
async function readRun({ store, recorder }: Pick<StorySource, 'store' | 'recorder'>, scope: Scope, taskId: string) {
  const stored = await readWhole(store, scope, taskId)
  if (!stored) return undefined
  const { task, generation } = stored
  const events = await readAllEvents(store, scope, taskId, generation)
  const steps = (recorder.find(task.contextId)?.steps.from(1) ?? []).filter(({ to }) => to.taskId === taskId)
  return { task, events, steps }
}

/** The most messages before a task that belong to its story, in both measures. */
const [MOST_BEFORE, MOST_BYTES] = [100, 1024 * 1024]

/** The messages of the context that led to a task: those after the task before it, oldest first. */
export async function messagesBefore(
  store: Pick<Observation['store'], 'readMessages'>,
  scope: Scope,
  { id, contextId = '' }: Task
): Promise<Message[]> {
  const rows = await store.readMessages({ ...scope, contextId }, MOST_BEFORE, { before: id, bytes: MOST_BYTES })
  const last = rows.findLastIndex(({ taskId }) => taskId !== undefined)
  return rows.slice(last + 1).map(({ message }) => message)
}

/** The story of a task as an HTML file; `undefined` if there is none in this scope. */
export async function taskStory(
  { agent, charts, redact, ...source }: StorySource,
  scope: Scope,
  taskId: string
): Promise<string | undefined> {
  const run = await readRun(source, scope, taskId)
  if (!run) return undefined
  const { task, events } = run
  const steps = run.steps.map(step => shownStep(step, redact))
  const shown = charts.flatMap(({ id, title, svg }) => {
    const own = steps.filter(({ states }, i) => states !== undefined && run.steps[i]?.to.chart === id)
    if (own.length > 0) return [{ id, title, svg, steps: litSteps(own), isRebuilt: false }]
    if (id !== 'task') return []
    return [{ id, title, svg, steps: rebuiltTaskSteps(events), isRebuilt: true }]
  })
  return storyHtml(
    {
      agent,
      task,
      before: await messagesBefore(source.store, scope, task),
      events,
      work: shown.find(({ id }) => id === 'work'),
      steps,
      charts: shown.filter(({ id }) => id !== 'work')
    },
    redact
  )
}

/**
 * A task as a recorded example, as JSON text without secrets; `undefined` if there is none in this scope. Files in
 * messages and artifacts stay as they are.
 */
export async function taskExample(
  { redact, ...source }: Omit<StorySource, 'agent' | 'charts'>,
  scope: Scope,
  taskId: string
): Promise<string | undefined> {
  const run = await readRun(source, scope, taskId)
  return run && exampleText(run.task, run.events, run.steps, redact)
}
