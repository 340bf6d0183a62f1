import type { AnyMachineSnapshot, EventObject } from 'xstate'
import type { FieldViolation } from '../../machines/protocol/errors.ts'
import type { ToWork, WorkEvent } from '../../machines/task-events.ts'
import { messageOf, questionEventOf } from '../authoring/checked-words.ts'
import { publishedSchema } from '../authoring/json-schema.ts'
import { contentValue } from '../authoring/message-data.ts'
import type { WorkMeta, WorkTag } from '../authoring/setup-work.ts'
import { validated } from '../ports/standard-schema.ts'
import { activeStates } from '../xstate/persisted-snapshot.ts'

/** The open question of a work chart: the ids of its states, its message as JSON, and the event for its task. */
export interface ChartQuestion {
  readonly states: string
  readonly words: string
  readonly event: WorkEvent
}

/** Tags of states that ask, in order of precedence. */
const ASKING = ['auth-required', 'input-required'] as const satisfies readonly WorkTag[]

/** The chart's open question, if any: the states that have the asking tag, with message and schema of the first that has a prompt. */
export function chartQuestion(snapshot: AnyMachineSnapshot): ChartQuestion | undefined {
  const type = askingTag(snapshot)
  if (!type) return undefined
  const message = messageOf(wordsIn(snapshot, type, 'prompt') ?? 'The agent needs an answer to go on.')
  const answerSchema = publishedSchema(metaOf(snapshot, type) ?? {})
  const states = statesTagged(snapshot, type).map(({ id }) => id).join()
  return { states, words: JSON.stringify(message), event: questionEventOf({ type, message, ...(answerSchema && { answerSchema }) }) }
}

/** Whether an event brings a client's message or an authorization to the chart. */
export function isGiven(event: EventObject): event is ToWork {
  return event.type === 'message.received' || event.type === 'authorization.received'
}

/**
 * Validates an event against the schema of the chart's question. Gives the event with the parsed answer, or violations. An event
 * that has an answer is not validated again, and neither is a message to a state that waits for an authorization. Throws what
 * the schema throws.
 */
export function answered<Given extends ToWork>(snapshot: AnyMachineSnapshot, event: Given): { readonly event: Given } | { readonly violations: FieldViolation[] } {
  if ('answer' in event) return { event }
  const tag = askingTag(snapshot)
  const isAnswer = tag !== undefined && (tag === 'auth-required') === (event.type === 'authorization.received')
  const schema = isAnswer ? metaOf(snapshot, tag)?.schema : undefined
  if (!schema) return { event }
  const checked = event.type === 'message.received' ? validated(schema, contentValue(event.message), 'message.parts') : validated(schema, event.data, 'data')
  return 'value' in checked ? { event: { ...event, answer: checked.value } } : checked
}

/** The prompt or reason in the `meta` of the state that has the tag. If it is a function, calls it with the chart's context. */
export function wordsIn(snapshot: AnyMachineSnapshot, tag: WorkTag, member: 'prompt' | 'reason'): unknown {
  const words = metaOf(snapshot, tag, member)?.[member]
  return typeof words === 'function' ? words({ context: snapshot.context }) : words
}

function askingTag(snapshot: AnyMachineSnapshot): (typeof ASKING)[number] | undefined {
  return ASKING.find(tag => snapshot.hasTag(tag))
}

/** The `meta` of the first state with the tag that has this member, else of the first with the tag. */
function metaOf(snapshot: AnyMachineSnapshot, tag: WorkTag, member: 'prompt' | 'reason' = 'prompt'): WorkMeta | undefined {
  const states = statesTagged(snapshot, tag)
  return (states.find(({ meta }) => meta?.[member] !== undefined) ?? states[0])?.meta
}

function statesTagged(snapshot: AnyMachineSnapshot, tag: WorkTag) {
  return activeStates(snapshot).filter(({ tags }) => tags.includes(tag))
}
