import type { AnyMachineSnapshot, EventObject } from 'xstate'
import type { FieldViolation } from '../../machines/protocol/errors.ts'
import type { ToWork, WorkEvent } from '../../machines/task-events.ts'
import { messageOf, questionEventOf } from '../authoring/checked-words.ts'
import { publishedSchema } from '../authoring/json-schema.ts'
import { contentValue } from '../authoring/message-data.ts'
import type { WorkMeta, WorkTag } from '../authoring/setup-work.ts'
import { validated } from '../ports/standard-schema.ts'
import { activeStates } from '../xstate/persisted-snapshot.ts'

/** What a work chart waits for: in which states, in which words, and what it says of that to its task. */
export interface ChartQuestion {
  readonly states: string
  readonly words: string
  readonly event: WorkEvent
}

/** The tags of states that ask, the one that counts first first. */
const ASKING = ['auth-required', 'input-required'] as const satisfies readonly WorkTag[]

/** What the chart waits for: the states that have the tag, and the words and schema of the first that has words. */
export function chartQuestion(snapshot: AnyMachineSnapshot): ChartQuestion | undefined {
  const type = askingTag(snapshot)
  if (!type) return undefined
  const message = messageOf(wordsIn(snapshot, type, 'prompt') ?? 'The agent needs an answer to go on.')
  const answerSchema = publishedSchema(metaOf(snapshot, type) ?? {})
  const states = statesTagged(snapshot, type).map(({ id }) => id).join()
  return { states, words: JSON.stringify(message), event: questionEventOf({ type, message, ...(answerSchema && { answerSchema }) }) }
}

/** Whether an event is what a client, or somebody out of band, has for the chart. */
export function isGiven(event: EventObject): event is ToWork {
  return event.type === 'message.received' || event.type === 'authorization.received'
}

/**
 * What came as the chart is to hear it: with what its question's schema makes of it; or what is wrong with it, by field. An
 * event that has an answer was checked before. A message to a state that waits for an authorization is none, and has no
 * schema. Throws what the schema throws.
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

/** The words in the `meta` of the state that has the tag: themselves, or a function of the chart's context. */
export function wordsIn(snapshot: AnyMachineSnapshot, tag: WorkTag, member: 'prompt' | 'reason'): unknown {
  const words = metaOf(snapshot, tag, member)?.[member]
  return typeof words === 'function' ? words({ context: snapshot.context }) : words
}

function askingTag(snapshot: AnyMachineSnapshot): (typeof ASKING)[number] | undefined {
  return ASKING.find(tag => snapshot.hasTag(tag))
}

/** The `meta` of the first state with the tag that has this member, else of the first. */
function metaOf(snapshot: AnyMachineSnapshot, tag: WorkTag, member: 'prompt' | 'reason' = 'prompt'): WorkMeta | undefined {
  const states = statesTagged(snapshot, tag)
  return (states.find(({ meta }) => meta?.[member] !== undefined) ?? states[0])?.meta
}

function statesTagged(snapshot: AnyMachineSnapshot, tag: WorkTag) {
  return activeStates(snapshot).filter(({ tags }) => tags.includes(tag))
}
