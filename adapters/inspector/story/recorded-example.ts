import { decode } from '../../../machines/protocol/codec/decode.ts'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import {
  MessageSchema,
  StreamResponseSchema,
  type Message,
  type Part,
  type Task
} from '../../../machines/protocol/objects.ts'
import type { TaskEvent } from '../../../runtime/store/store.ts'
import { EXAMPLE_ID, type ActorStep, type RecordedExample } from '../feed.ts'
import { type Redact, type SeenStep, shownStep } from '../recorder/seen-step.ts'

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
