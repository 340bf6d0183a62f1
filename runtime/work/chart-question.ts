import type { AnyActorRef, AnyMachineSnapshot, EventObject, MachineContext } from 'xstate'
import type { FieldViolation } from '../../machines/protocol/errors.ts'
import type { ToWork, WorkEvent } from '../../machines/task-events.ts'
import { messageOf, questionEventOf } from '../authoring/checked-words.ts'
import { answerEvent, contentValue, publishedSchema } from '../authoring/input-schema.ts'
import { ASKING, type WorkTag } from '../authoring/question-guards.ts'
import type { WorkMeta } from '../authoring/setup-work.ts'
import { validateValue } from '../ports/standard-schema.ts'
import { NONE } from '../primitives/collections.ts'
import { type ActiveState, activeStates, isChart, isWithin } from '../xstate/persisted-snapshot.ts'

/** A question that a work chart, or a chart among its actors, asks in its present state. */
export interface ChartQuestion {
  /** The actors above the asking one and the ids of the asking states, to tell it from other questions. */
  readonly key: string
  readonly type: 'auth-required' | 'input-required'
  /** The actor whose chart asks; `undefined` for the work itself. */
  readonly actor: AnyActorRef | undefined
  readonly chart: AnyMachineSnapshot
  /** The states that have the tag, each nested in the one before it. */
  readonly states: readonly ActiveState[]
}

/** A question with its message as JSON, and the event for its task. */
export interface PromptedQuestion extends ChartQuestion {
  readonly words: string
  readonly event: WorkEvent
}

/** The message of a state that asks and has no prompt. */
const NO_PROMPT = 'The agent needs an answer to go on.'

/**
 * The open question of a chart: the one that was open before, if it still is, else the first with a prompt, in the
 * order of the chart's states, then of its actors. `open`: the key of the one that was open.
 */
export function openQuestion(chart: AnyMachineSnapshot, open: string | undefined): ChartQuestion | undefined {
  const questions = questionsOf(chart)
  return (
    questions.find(({ key }) => key === open) ??
    questions.find(({ states }) => metaOf(states, 'prompt')?.prompt !== undefined) ??
    questions[0]
  )
}

/** The open question, with the message of the first of its states that has a prompt, and that one's schema. */
export function promptedQuestion(chart: AnyMachineSnapshot, open: string | undefined): PromptedQuestion | undefined {
  const question = openQuestion(chart, open)
  if (!question) return undefined
  const {
    type,
    states,
    chart: { context }
  } = question
  const meta = metaOf(states, 'prompt')
  const message = messageOf(called(meta?.prompt, context) ?? NO_PROMPT)
  const answerSchema = publishedSchema(meta ?? {})
  return {
    ...question,
    words: JSON.stringify(message),
    event: questionEventOf({ type, message, ...(answerSchema && { answerSchema }) })
  }
}

/** The questions of a chart, and below it of its actors: one for each innermost state that asks. */
function questionsOf(chart: AnyMachineSnapshot, path: readonly AnyActorRef[] = NONE): ChartQuestion[] {
  if (chart.status !== 'active') return []
  const questions = ASKING.some(tag => chart.hasTag(tag)) ? ownQuestions(chart, path) : []
  for (const id in chart.children) {
    const actor = chart.children[id] as AnyActorRef
    const below = actor.getSnapshot() as AnyMachineSnapshot
    if (isChart(below)) questions.push(...questionsOf(below, [...path, actor]))
  }
  return questions
}

function ownQuestions(chart: AnyMachineSnapshot, path: readonly AnyActorRef[]): ChartQuestion[] {
  const asking = activeStates(chart)
    .filter(({ tags }) => tags.some(tag => ASKING.includes(tag)))
    .toSorted((one, other) => one.order - other.order)
  const innermost = asking.filter(state => !asking.some(other => other !== state && isWithin(other, state)))
  return innermost.map(state => {
    const around = asking.filter(outer => isWithin(state, outer))
    const type = around.some(({ tags }) => tags.includes('auth-required')) ? 'auth-required' : 'input-required'
    const states = around.filter(({ tags }) => tags.includes(type))
    return { key: [...path, ...states].map(({ id }) => id).join(), type, actor: path.at(-1), chart, states }
  })
}

/** Whether an event brings a client's message or an authorization to the chart. */
export function isClientInput(event: EventObject): event is ToWork {
  return event.type === 'message.received' || event.type === 'authorization.received'
}

/** An event for the chart that asks, or violations. */
export type AnswerValidation<Given> =
  | { readonly event: Given; readonly question?: ChartQuestion | undefined }
  | { readonly violations: FieldViolation[] }

/**
 * Validates an event against the schema of the chart's open question. Gives the event with the id of the asking state
 * as `question`, and with the parsed answer, or violations. An event that has an answer is not validated again, and
 * neither is a message to a state that waits for an authorization. Throws what the schema throws.
 */
export function validateAnswer<Given extends ToWork>(
  chart: AnyMachineSnapshot,
  given: Given,
  open: string | undefined
): AnswerValidation<Given> {
  const question = openQuestion(chart, open)
  if (!question) return { event: given }
  const event = { ...given, question: question.states.at(-1)?.id }
  const isAnswer = (question.type === 'auth-required') === (given.type === 'authorization.received')
  const schema = isAnswer && !('answer' in given) ? metaOf(question.states, 'prompt')?.schema : undefined
  if (!schema) return { event, question }
  const checked =
    given.type === 'message.received'
      ? validateValue(schema, contentValue(given.message), 'message.parts')
      : validateValue(schema, given.data, 'data')
  return 'value' in checked ? { event: { ...event, answer: checked.value }, question } : checked
}

/** The event of a validated answer as the chart receives it: without the parsed answer, which `dataOf` reads. */
export function receivedAnswer({
  event,
  question
}: {
  readonly event: EventObject
  readonly question?: ChartQuestion | undefined
}): EventObject {
  const schema = question && 'answer' in event ? metaOf(question.states, 'prompt')?.schema : undefined
  return schema ? answerEvent(event, schema) : event
}

/** The reason in the `meta` of the state with this tag. If it is a function, calls it with the chart's context. */
export function reasonIn(chart: AnyMachineSnapshot, tag: WorkTag): unknown {
  return called(
    metaOf(
      activeStates(chart).filter(({ tags }) => tags.includes(tag)),
      'reason'
    )?.reason,
    chart.context
  )
}

function called(words: WorkMeta['prompt'], context: MachineContext): unknown {
  return typeof words === 'function' ? words({ context }) : words
}

/** The `meta` of the first of these states that has this member, else of the first. */
function metaOf(states: readonly ActiveState[], member: 'prompt' | 'reason'): WorkMeta | undefined {
  return (states.find(({ meta }) => meta?.[member] !== undefined) ?? states[0])?.meta
}
