import { inspect } from 'node:util'
import type { AnyActorRef, AnyMachineSnapshot, EventObject } from 'xstate'
import type { ContextRequest, NegotiationOutcome } from '../../machines/negotiation-events.ts'
import {
  message,
  nonEmptyText,
  optionalId,
  optionalList,
  optionalText,
  presenceField,
  type Schema,
  struct,
  tryDecode
} from '../../machines/protocol/codec/decode.ts'
import { checkJson, isObject, toJson } from '../../machines/protocol/codec/json.ts'
import { A2AError, violationsText } from '../../machines/protocol/errors.ts'
import { partsField, type Part } from '../../machines/protocol/objects.ts'
import { ANSWER_SCHEMA } from '../../machines/protocol/uris.ts'
import type { ArtifactContent, MessageContent, WorkOutcome, WorkWord } from '../../machines/task-events.ts'
import { contextLoss, jsonLoss, kindIn } from '../primitives/json.ts'
import { closestName } from '../primitives/options.ts'
import type { Question } from './questions.ts'
import { isQuestionType, notYet, releaseWord, type WorkResult } from './words.ts'

/** Words that only a negotiation may answer. */
const NEGOTIATED: readonly unknown[] = ['reply', 'accepted', 'offer', 'declined']

const RESULT = Object.keys({ artifact: true, artifacts: true, message: true, metadata: true } satisfies Record<
  keyof WorkResult,
  true
>)

/** Maximum number of unknown members that an error names. */
const SHOWN = 5

/** The members that a message and an artifact have in common. */
const content = { parts: partsField, metadata: presenceField(struct), extensions: optionalList(nonEmptyText) }
const MessageContentSchema = message(content)
const ArtifactContentSchema = message({
  artifactId: optionalId,
  name: optionalText,
  description: optionalText,
  ...content
})

/** The event of a question for the task's chart. */
export type QuestionEvent = Extract<WorkWord, { type: 'work.asked' | 'work.needsAuthorization' }>

/**
 * Validates an author's word and converts it to an event for the task's chart. Everything that an author's code hands
 * over is validated in this file, whatever its type says. Throws InvalidAgentResponse that names the member which is
 * not valid A2A.
 */
export function toWorkEvent(words: unknown): WorkWord {
  const word = wordOf(words, ['progress', 'artifact'], 'say progress(…) or artifact(…)')
  if (word.type === 'artifact') {
    const produced: WorkWord = { type: 'work.produced', artifact: artifactOf(word.artifact) }
    if (word.append === true) produced.append = true
    if (word.lastChunk === true) produced.lastChunk = true
    return produced
  }
  return {
    type: 'work.progressed',
    ...(word.message !== undefined && { message: messageOf(word.message) }),
    ...(word.metadata !== undefined && { metadata: metadataOf(word.metadata) })
  }
}

/** The event of a question, with the JSON Schema of its answer, if it has one. */
export function questionEventOf(question: Pick<Question, 'type' | 'message' | 'answerSchema'>): QuestionEvent {
  releaseWord(question)
  const { type, answerSchema } = question
  const asks = messageOf(question.message)
  const shown = answerSchema ? { ...asks, metadata: { ...asks.metadata, [ANSWER_SCHEMA]: answerSchema } } : asks
  return { type: type === 'input-required' ? 'work.asked' : 'work.needsAuthorization', message: shown }
}

/**
 * A copy through JSON of a value that the author's code reads back; `undefined` stays. Throws InvalidAgentResponse for
 * a value that JSON would change.
 */
export function keptValue<T>(value: T, name: string): T {
  if (value === undefined) return value
  const loss = tried(() => jsonLoss(value, name, 'kept'), name)
  if (loss !== undefined)
    throw new A2AError('InvalidAgentResponse', `The agent's code produced a value that cannot be stored: ${loss}`)
  return copied(value, name)
}

/** Copies a value that only goes out through JSON. Throws InvalidAgentResponse for a value that JSON would change. */
export function sentValue<T>(value: T, name: string): T {
  const loss = tried(() => jsonLoss(value, name, 'sent'), name)
  if (loss !== undefined)
    throw new A2AError('InvalidAgentResponse', `The agent's code produced something that is not valid A2A: ${loss}`)
  return copied(value, name)
}

/**
 * Throws InvalidAgentResponse if a transition put a value into the chart's context, or into the input of an actor that
 * it started, that JSON changes: it would differ after a restart.
 */
export function checkContext(snapshot: AnyMachineSnapshot, before?: AnyMachineSnapshot): AnyMachineSnapshot {
  const loss = contextLoss(snapshot.context, before?.context)
  if (loss !== undefined)
    throw new A2AError('InvalidAgentResponse', `The agent's chart has a context that cannot be stored: ${loss}`)
  if (snapshot.children !== before?.children) checkInputs(snapshot.children, before?.children)
  return snapshot
}

/** The stored snapshot of an actor has its input, unless the actor is a chart. */
function checkInputs(children: AnyMachineSnapshot['children'], before: AnyMachineSnapshot['children'] = {}): void {
  for (const id in children) {
    const child = children[id] as AnyActorRef
    if (child === before[id]) continue
    const { input } = child.getSnapshot() as { readonly input?: unknown }
    const loss = input === undefined ? undefined : jsonLoss(input, 'input', 'kept')
    if (loss !== undefined)
      throw new A2AError(
        'InvalidAgentResponse',
        `The agent's chart starts the actor ${id} with an input that cannot be stored: ${loss}`
      )
  }
}

/**
 * Throws InvalidAgentResponse if logic of `fromTransition` has a state that JSON changes: it would differ after a
 * restart.
 */
export function checkState<State extends { readonly context?: unknown }>(id: string, snapshot: State): State {
  const loss = snapshot.context === undefined ? undefined : jsonLoss(snapshot.context, 'state', 'context')
  if (loss !== undefined)
    throw new A2AError(
      'InvalidAgentResponse',
      `The agent's chart has an actor ${id} whose state cannot be stored: ${loss}`
    )
  return snapshot
}

/** Throws InvalidAgentResponse if a chart delays an event that JSON changes: it would differ after a restart. */
export function checkDelayed({ event }: { readonly event: EventObject }): void {
  const loss = jsonLoss(event, 'event', 'kept')
  if (loss !== undefined)
    throw new A2AError(
      'InvalidAgentResponse',
      `The agent's chart delays ${event.type}, which cannot be stored: ${loss}`
    )
}

/** The outcome of a work's return value or output. `undefined` is a result without artifacts. */
export function toOutcome(result: unknown): WorkOutcome {
  releaseWord(result)
  const given = result ?? {}
  if (typeof given !== 'object' || Array.isArray(given) || Symbol.asyncIterator in given)
    throw invalid("result must be an object such as { artifact: text('…') }")
  checkResult(given)
  if ('type' in given && (given.type === 'rejected' || given.type === 'failed')) {
    return endedFor(given.type, 'reason' in given ? given.reason : undefined)
  }
  if ('type' in given && NEGOTIATED.includes(given.type))
    throw invalid(
      `result must not be ${String(given.type)}(…), which a negotiation answers; work returns { message: '…' }`
    )
  const { artifact, artifacts = [], message: words, metadata } = given as Record<string, unknown>
  if (!Array.isArray(artifacts)) throw invalid('result.artifacts must be a list of artifacts')
  const all: unknown[] = artifact === undefined ? artifacts : [artifact, ...artifacts]
  return {
    state: 'completed',
    artifacts: all.map(artifactOf),
    ...(words !== undefined && { message: messageOf(words) }),
    ...(metadata !== undefined && { metadata: metadataOf(metadata) })
  }
}

/**
 * Refuses an object without any member of a result, since it would complete the task and lose what the author returned.
 */
function checkResult(given: object): void {
  if ('type' in given && (given.type === 'rejected' || given.type === 'failed' || NEGOTIATED.includes(given.type)))
    return
  if ('type' in given && isQuestionType(given.type))
    throw invalid(
      'result must not be a question: await ask(…) in a function, or yield* it in a generator, and return the result'
    )
  if (kindIn(given) === 'Error')
    throw invalid("result must not be an error: throw it, or return failed('…') with a reason for the client")
  if (RESULT.some(member => member in given)) return
  const [name, ...others] = Object.keys(given)
  if (name === undefined && kindIn(given) === 'Object') return
  const meant = name === undefined ? undefined : closestName(name, RESULT)
  const found = name === undefined ? `is a ${kindIn(given)}` : `has ${[name, ...others].slice(0, SHOWN).join(', ')}`
  throw invalid(
    `result ${found}, and none of ${RESULT.join(', ')}. ${meant === undefined ? "Return { artifact: text('…') }, or data(…) for a value" : `Is ${meant} meant?`}`
  )
}

/** The outcome of work that fails or rejects its task, with the author's reason. */
export function endedFor(state: 'rejected' | 'failed', reason: unknown): WorkOutcome {
  return { state, message: messageOf(reason ?? `The task was ${state} without a reason.`) }
}

/** The outcome of a negotiation's answer. */
export function decisionOf(answer: unknown, request: ContextRequest, opensTasks: boolean): NegotiationOutcome {
  const wanted = opensTasks
    ? 'answer reply(…), accepted(…) or rejected(…)'
    : 'answer reply(…), for the agent has no work'
  const word = wordOf(answer, opensTasks ? ['reply', 'accepted', 'rejected'] : ['reply'], wanted)
  if (word.type === 'reply') return { request, decision: 'replied', reply: messageOf(word.message) }
  if (word.type === 'rejected') return { request, decision: 'rejected', reason: messageOf(word.reason) }
  return {
    request,
    decision: 'accepted',
    ...(word.terms !== undefined && { terms: metadataOf(keptValue(word.terms, 'terms')) })
  }
}

/** Validated content of a message from anything that `Words` allows. */
export function messageOf(words: unknown): MessageContent {
  return owned(checked(MessageContentSchema, withParts(words, 'message'), 'message'), 'message')
}

/** Validated content of an artifact from anything that `ArtifactWords` allows. */
export function artifactOf(words: unknown): ArtifactContent {
  return owned(checked(ArtifactContentSchema, withParts(words, 'artifact'), 'artifact'), 'artifact')
}

function metadataOf(metadata: unknown): Record<string, unknown> {
  return boundedStruct(checked(struct, metadata, 'metadata'), 'metadata')
}

function withParts(words: unknown, name: string): unknown {
  const unfinished = notYet(words)
  if (unfinished !== undefined)
    throw new A2AError('InvalidAgentResponse', `The agent's code gave as ${name} ${unfinished}`)
  if (typeof words === 'string') return { parts: [{ text: words }] }
  if (Array.isArray(words)) return { parts: words }
  return typeof words === 'object' && words !== null && !('parts' in words) ? { parts: [words] } : words
}

/** A word of one of these types. Throws InvalidAgentResponse for any other value. */
export function wordOf(value: unknown, types: string[], wanted: string): Record<string, unknown> {
  releaseWord(value)
  const type = typeof value === 'object' && value !== null && 'type' in value ? value.type : undefined
  if (typeof type !== 'string' || !types.includes(type)) {
    const unfinished = notYet(value)
    throw new A2AError(
      'InvalidAgentResponse',
      `The agent's code has to ${wanted}${unfinished === undefined ? '.' : `, not ${unfinished}`}`
    )
  }
  return value as Record<string, unknown>
}

function checked<T>(schema: Schema<T>, value: unknown, name: string): T {
  const { value: valid, violations } = tryDecode(schema, value, name)
  if (!violations) return valid
  throw invalid(violationsText(violations))
}

/** Copies the content's free-form JSON, so that later changes by the author do not reach it. */
function owned<T extends { parts: Part[]; metadata?: Record<string, unknown> }>(given: T, name: string): T {
  if (!given.metadata && !given.parts.some(hasJson)) return given
  const parts = given.parts.map((part, i) => (hasJson(part) ? boundedPart(part, `${name}.parts[${i}]`) : part))
  return { ...given, parts, ...(given.metadata && { metadata: boundedStruct(given.metadata, `${name}.metadata`) }) }
}

function hasJson(part: Part): boolean {
  return 'data' in part || part.metadata !== undefined
}

function boundedPart(part: Part, name: string): Part {
  const data = 'data' in part ? { data: bounded(part.data, `${name}.data`) } : {}
  const metadata = part.metadata && { metadata: boundedStruct(part.metadata, `${name}.metadata`) }
  return { ...part, ...data, ...metadata }
}

/** Copies a value through JSON, and checks the limits for JSON from clients, except the length of strings. */
function bounded<T>(value: T, name: string): T {
  const own = sentValue(value, name)
  const violation = checkJson(own, { root: name, stringLength: Infinity })
  if (violation) throw invalid(`${violation.field} ${violation.description}`)
  return own
}

/** Like `bounded`, for metadata, which must be an object. */
function boundedStruct(value: Record<string, unknown>, name: string): Record<string, unknown> {
  const own: unknown = bounded(value, name)
  if (isObject(own)) return own
  throw invalid(`${name} must be an object, also after its toJSON`)
}

function copied<T>(value: T, name: string): T {
  return tried(() => toJson(value), name) as T
}

/** Walks through an author's value, which may have a getter that throws, or nest too deeply for any walk. */
function tried<T>(walk: () => T, name: string): T {
  try {
    return walk()
  } catch {
    throw invalid(
      `${name} must be JSON that can be read: without getters that throw, and not nested many thousands deep`
    )
  }
}

function invalid(what: string): A2AError {
  return new A2AError('InvalidAgentResponse', `The agent's code produced something that is not valid A2A: ${what}.`)
}

/** Throws RangeError unless the delay is a finite number of milliseconds of at least 0. */
export function checkWait(delayMs: number): void {
  if (typeof delayMs !== 'number' || !(delayMs >= 0 && delayMs < Infinity))
    throw new RangeError(
      `A wait is a number of milliseconds from 0, not ${inspect(delayMs)}: sleep(1000), or { deadlineMs: 1000 }.`
    )
}
