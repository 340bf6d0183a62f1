import { isObject } from '../../../machines/protocol/codec/json.ts'
import { isNegotiationPart, offerIn } from '../../../machines/protocol/negotiation.ts'
import type { Artifact, Message, Part, Task, TaskStatus } from '../../../machines/protocol/objects.ts'
import { isInterrupted, isTerminal, stateText, type TaskState } from '../../../machines/protocol/states.ts'
import { ANSWER_SCHEMA, NEGOTIATION_EXTENSION } from '../../../machines/protocol/uris.ts'
import type { TaskEvent } from '../../../runtime/store/store.ts'
import type { ActorStep } from '../feed.ts'
import { artifactTitle, eventWords, partsText, statusMessageText } from './chart-path.ts'

/** One line of a story: a message, or an event of the task. */
export interface StoryLine {
  /** Of the event. A message of the client has none; one of before the task has one that is not above 0. */
  readonly generation: number | undefined
  readonly from: 'client' | 'agent'
  readonly what: string
  readonly message?: Message | undefined
  readonly event?: TaskEvent
}

/**
 * Messages and events in one order. A message of the client has no generation: it comes after the agent's message
 * before it. Without events, there are only messages.
 */
export function storyLines({ status, history = [] }: Task, events: readonly TaskEvent[]): StoryLine[] {
  const messages =
    status.message && !history.some(({ messageId }) => messageId === status.message?.messageId)
      ? [...history, status.message]
      : history
  const lines: StoryLine[] = []
  const places = new Map(
    events.flatMap(({ update }, i) =>
      'statusUpdate' in update && update.statusUpdate.status.message
        ? [[update.statusUpdate.status.message.messageId, i] as const]
        : []
    )
  )
  let next = 0
  const takeUntil = (messageId: string) => {
    const at = places.get(messageId) ?? -1
    for (; next <= at; next += 1) lines.push(lineOfEvent(events[next] as TaskEvent))
    return at >= 0
  }
  for (const message of messages) {
    const isKnown = message.role === 'ROLE_AGENT' && takeUntil(message.messageId)
    if (!isKnown) lines.push(lineOfMessage(message))
  }
  return [...lines, ...events.slice(next).map(lineOfEvent)]
}

/** A message that is in no event. */
export function lineOfMessage(message: Message): StoryLine {
  return { generation: undefined, from: message.role === 'ROLE_AGENT' ? 'agent' : 'client', what: 'message', message }
}

/** An event of a task. */
export function lineOfEvent(event: TaskEvent): StoryLine {
  const { generation, update } = event
  if ('artifactUpdate' in update) return { generation, from: 'agent', what: eventWords(event), event }
  const { state, message } = update.statusUpdate.status
  return { generation, from: 'agent', what: stateText(state), message, event }
}

/** The states of a chart at a generation of a task, and the transitions that led there, as far as they are known. */
export interface LitStep {
  readonly generation: number
  readonly states: readonly string[]
  readonly transitions: readonly string[]
}

/** Recorded steps as lit ones. A step without a known generation belongs to the next known one. */
export function litSteps(steps: readonly ActorStep[]): LitStep[] {
  let next = Infinity
  return steps
    .toReversed()
    .map(({ generation = next, states = [], transitions = [] }) => {
      next = generation
      return { generation, states, transitions }
    })
    .toReversed()
}

/** A moment of a story: what is new in it, and what the task and its chart are then. */
export interface StoryMoment {
  readonly lines: readonly StoryLine[]
  readonly generation: number
  /** `undefined` before the first status is known. */
  readonly status: TaskStatus | undefined
  /** The artifacts so far, by their ids; of those in chunks no part. */
  readonly results: ReadonlyMap<string, Artifact>
  /** The steps of the chart that belong to it. */
  readonly steps: readonly LitStep[]
}

/**
 * The moments of a story. An event without new words, state, artifact or lit state belongs to the moment before it. A
 * longer story than `most` has groups of as many moments each as `most` needs: a group shows what its last moment does.
 */
export function storyMoments(
  lines: readonly StoryLine[],
  steps: readonly LitStep[],
  most: number
): readonly StoryMoment[] {
  const moments: (StoryMoment & { readonly lines: StoryLine[] })[] = []
  let taken = 0
  for (const line of lines) {
    const last = moments.at(-1)
    const generation = line.generation ?? (last?.generation ?? 0) + 1
    const from = taken
    while ((steps[taken]?.generation ?? Infinity) <= generation) taken += 1
    const moment = momentAfter(last, line, generation, steps.slice(from, taken))
    if (last && !isNew(last, moment)) {
      last.lines.push(line)
      moments.splice(-1, 1, { ...moment, lines: last.lines, steps: last.steps })
    } else moments.push(moment)
  }
  const size = Math.ceil(moments.length / most)
  if (size <= 1) return moments
  return Array.from({ length: Math.ceil(moments.length / size) }, (_, i) =>
    joined(moments.slice(i * size, (i + 1) * size))
  )
}

function momentAfter(
  last: StoryMoment | undefined,
  line: StoryLine,
  generation: number,
  steps: readonly LitStep[]
): StoryMoment & { readonly lines: StoryLine[] } {
  const { update } = line.event ?? {}
  const { status, results = new Map<string, Artifact>() } = last ?? {}
  const moment = { lines: [line], generation, status, results, steps }
  if (!update) return moment
  if ('statusUpdate' in update) return { ...moment, status: update.statusUpdate.status }
  const { artifact, append } = update.artifactUpdate
  const known = results.get(artifact.artifactId)
  // The title of an artifact in chunks is its name, since the text of one chunk is not whole.
  const result = append ? { ...(known ?? artifact), parts: [] } : artifact
  if (known && artifactTitle(known) === artifactTitle(result)) return moment
  return { ...moment, results: new Map(results).set(artifact.artifactId, result) }
}

function isNew(last: StoryMoment, { lines: [line], status, results, steps }: StoryMoment): boolean {
  return (
    steps.length > 0 || line?.message !== undefined || status?.state !== last.status?.state || results !== last.results
  )
}

function joined(moments: readonly StoryMoment[]): StoryMoment {
  return {
    ...(moments.at(-1) as StoryMoment),
    lines: moments.flatMap(({ lines }) => lines),
    steps: moments.flatMap(({ steps }) => steps)
  }
}

/** One point of a run: a message, words, an offer, a question, a step, a result, or an end. */
export interface RunPoint {
  readonly key: string
  readonly kind: keyof typeof POINT_KINDS
  readonly text: string
  /** The generation of the task from which it is there; that of its line for one of before the task. */
  readonly generation: number
  readonly atMs: number
}

/** The kinds of points, for people. */
export const POINT_KINDS = {
  client: 'client',
  works: 'says',
  offers: 'offers',
  asks: 'asks',
  step: 'step',
  result: 'result',
  completed: 'ended',
  failed: 'ended',
  canceled: 'ended'
} as const

/**
 * The points of a run, oldest first: of its lines, and of steps of the work whose results were stored. Each of these
 * stands where it was stored.
 */
export function runPoints(lines: readonly StoryLine[], steps: readonly ActorStep[]): RunPoint[] {
  const points: RunPoint[] = []
  let [last, atMs] = [0, 0]
  for (const { generation, message, event } of lines) {
    if (event) atMs = timeOf(event) || atMs
    const point = event ? pointOfEvent(event) : message && pointOfMessage(message, generation ?? last + 1)
    if (!point) continue
    last = point.generation
    points.push({ ...point, atMs })
  }
  for (const { n, atMs, kind, event, generation = Infinity } of steps) {
    if (kind !== 'stored') continue
    const next = points.findIndex(point => point.generation > generation || point.atMs > atMs)
    const at = next < 0 ? points.length : next
    const step = { key: `step ${n}`, kind: 'step', text: String(event['name']), atMs } as const
    points.splice(at, 0, { ...step, generation: points[at - 1]?.generation ?? 0 })
  }
  return points
}

type PointDraft = Omit<RunPoint, 'atMs'>

/** The point of a message that is in no event. */
function pointOfMessage(message: Message, generation: number): PointDraft {
  const { messageId: key, parts } = message
  const words = partsText(parts.filter(part => !isNegotiationPart(part)))
  if (message.role === 'ROLE_AGENT') {
    const offer = offerIn(message)
    return { key, generation, kind: offer ? 'offers' : 'works', text: offer ? termsText(offer.terms) : words }
  }
  const move = moveOf(message)
  const terms = move && termsText(Object(move['propose']).terms)
  return { key, generation, kind: 'client', text: move ? `${moveWords(move)} ${terms}`.trim() : words }
}

/** Terms in one line. */
function termsText(terms: unknown): string {
  return Object.entries(Object(terms) as object)
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ')
}

/** The point of an event; none for one that says nothing new. */
function pointOfEvent(event: TaskEvent): PointDraft | undefined {
  const { generation, update } = event
  const key = String(generation)
  if ('artifactUpdate' in update)
    return update.artifactUpdate.append ? undefined : { key, kind: 'result', text: eventWords(event), generation }
  const { state } = update.statusUpdate.status
  const words = statusMessageText(event)
  if (isInterrupted(state)) return { key, kind: 'asks', text: words || stateText(state), generation }
  if (isTerminal(state)) return { key, kind: endKind(state), text: eventWords(event), generation }
  return words === '' ? undefined : { key, kind: 'works', text: words, generation }
}

/** The kind of an end, which has a colour: good, bad (failed or rejected), or neither. */
export function endKind(state: TaskState): 'completed' | 'failed' | 'canceled' {
  if (state === 'TASK_STATE_COMPLETED') return 'completed'
  return state === 'TASK_STATE_CANCELED' ? 'canceled' : 'failed'
}

function timeOf({ update }: TaskEvent): number {
  return 'statusUpdate' in update ? Date.parse(update.statusUpdate.status.timestamp ?? '') || 0 : 0
}

/** To whom words about a task are: to its client, or to anyone who reads about it later. */
export type Reader = 'client' | 'anyone'

/**
 * A sentence: the task works, waits, or has ended. `words`: of its status. `results`: titles of its artifacts.
 */
export function statusWords(
  { state }: Pick<TaskStatus, 'state'>,
  words: string,
  results: readonly string[],
  reader: Reader
): string {
  const quoted = words === '' ? '.' : `: “${words}”`
  if (!isTerminal(state)) return `${doing(state, reader)}${quoted}`
  return `The task has ended${quoted}${results.length === 0 ? '' : ` Its result: ${results.join(', ')}.`}`
}

function doing(state: TaskStatus['state'], reader: Reader): string {
  if (state === 'TASK_STATE_SUBMITTED') return 'The task is open, its work begins'
  if (state === 'TASK_STATE_AUTH_REQUIRED') return 'The agent waits for an authorization'
  if (state !== 'TASK_STATE_INPUT_REQUIRED') return 'The agent works'
  return `The agent waits for ${reader === 'client' ? 'your' : "the client's"} answer`
}

/**
 * A sentence: an answer leads to these states. Empty if the task waits for no answer. `states`: those of its chart, if
 * they are known.
 */
export function answerWords({ state }: Pick<TaskStatus, 'state'>, states: readonly string[]): string {
  if (!isInterrupted(state)) return ''
  if (state === 'TASK_STATE_AUTH_REQUIRED') return 'Once it is authorized, the work goes on.'
  return states.length === 0 ? 'With the answer the work goes on.' : `The answer leads to ${states.join(' or ')}.`
}

/** The event of a chart that an answer of the client is. */
const ANSWER = ' on message.received '

/** The states that the transitions for an answer lead to from active ones, by the names of a chart's transitions. */
export function statesAfterAnswer(active: readonly string[], transitions: readonly string[]): string[] {
  const leaving = transitions.filter(name => active.some(id => name.startsWith(`${id}${ANSWER}`)))
  const targets = leaving.flatMap(name => {
    const at = name.lastIndexOf(' to ')
    return at < 0 ? [] : [name.slice(at + 4)]
  })
  return [...new Set(targets)]
}

/** The choices of a question without a schema. */
export function choicesIn(message: Message | undefined): readonly Part[] {
  return isObject(message?.metadata?.[ANSWER_SCHEMA]) ? [] : (message?.parts ?? []).filter(part => 'data' in part)
}

/** The label of a choice: its name, if it has one. */
export function choiceLabel(part: Part): string {
  const value = 'data' in part ? part.data : undefined
  const name = isObject(value) ? (value['name'] ?? value['title'] ?? value['label']) : value
  return typeof name === 'string' ? name : JSON.stringify(value)
}

/** A move in a client's message, untrusted. */
export function moveOf({ parts }: Pick<Message, 'parts'>): Record<string, unknown> | undefined {
  for (const part of parts) {
    const move = 'data' in part && isObject(part.data) ? part.data[NEGOTIATION_EXTENSION] : undefined
    if (isObject(move)) return move
  }
  return undefined
}

/** A move in words. */
export function moveWords(move: Readonly<Record<string, unknown>>): string {
  if (isObject(move['propose'])) return 'Proposes other terms:'
  return move['accept'] === undefined ? 'Declines the offer.' : 'Accepts the offer.'
}
