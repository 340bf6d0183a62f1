import type { Message } from '../machines/protocol/parts.ts'
import type { FieldViolation } from '../machines/protocol/errors.ts'
import type { ToWork } from '../machines/task-events.ts'
import { textOf, type Words } from './words.ts'

/** What a schema makes of a value (standardschema.dev): the value as the schema gives it, or what is wrong with it. */
type SchemaResult<T> = { readonly value: T; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] }
type SchemaIssue = { readonly message: string; readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined }

/** A schema of zod, valibot, arktype or any other library that keeps to Standard Schema. It has to validate without a promise. */
export interface AnswerSchema<T> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<T> | Promise<SchemaResult<T>>
  }
}

/** How a question is asked. */
export interface QuestionOptions<T> {
  /** What an answer has to be: an answer that is not is refused, and the question stays. */
  readonly schema?: AnswerSchema<T>
  /** How long to wait for an answer, in milliseconds. Then the question throws DeadlineExceeded. Default: as long as the task may take. */
  readonly deadlineMs?: number
}

/** What comes of asking for an authorization: what arrived out of band, or what the client said instead. */
export type Authorization<T = unknown> = { readonly data: T } | { readonly message: Message }

/** Work asks, and the task is interrupted until there is an answer: `yield*` it in a generator, `ask` it in a function. */
export interface Question<Answer = unknown> {
  readonly type: 'input-required' | 'auth-required'
  readonly message: Words
  readonly options: QuestionOptions<unknown>
  /** The type of the answer; there is no such member. */
  readonly answer?: Answer
  [Symbol.iterator](): Generator<Question<Answer>, Answer>
}

/**
 * Asks the client (TASK_STATE_INPUT_REQUIRED). The answer is the client's message; with a `schema` it is the value of its
 * first data part, or else its text, as the schema gives it.
 */
export function inputRequired(message: Words): Question<Message>
export function inputRequired(message: Words, options: { readonly schema?: never; readonly deadlineMs: number }): Question<Message>
export function inputRequired<T>(message: Words, options: QuestionOptions<T> & { readonly schema: AnswerSchema<T> }): Question<T>
export function inputRequired(message: Words, options: QuestionOptions<unknown> = {}): Question<never> {
  return question('input-required', message, options) as Question<never>
}

/**
 * Asks for an authorization (TASK_STATE_AUTH_REQUIRED, §7.6), which comes out of band by `runtime.authorized(…)`. What it
 * brings may be typed by a `schema`. The client may answer with a message meanwhile.
 */
export function authRequired<T = unknown>(message: Words, options: QuestionOptions<T> = {}): Question<Authorization<T>> {
  return question('auth-required', message, options) as Question<Authorization<T>>
}

export function isQuestion(word: unknown): word is Question {
  return typeof word === 'object' && word !== null && 'options' in word && 'type' in word && (word.type === 'input-required' || word.type === 'auth-required')
}

/** What a question makes of what came: its answer, or what is wrong with it, by field. Throws TypeError for a schema that wants to wait. */
export function answerTo({ type, options }: Question, given: ToWork): { readonly answer: unknown } | { readonly violations: FieldViolation[] } {
  const { schema } = options
  if (type === 'auth-required') {
    if (given.type === 'message.received') return { answer: { message: given.message } }
    const checked = schema ? validated(schema, given.data, 'data') : { answer: given.data }
    return 'answer' in checked ? { answer: { data: checked.answer } } : checked
  }
  if (given.type !== 'message.received') return { violations: [{ field: 'data', description: 'is not what the task waits for: it asks for a message' }] }
  return schema ? validated(schema, valueOf(given.message), 'message.parts') : { answer: given.message }
}

function question(type: Question['type'], message: Words, options: QuestionOptions<unknown>): Question {
  const asked: Question = {
    type, message, options,
    // What a generator yields is the question; what it gets back is the answer.
    *[Symbol.iterator]() {
      return yield asked
    }
  }
  return asked
}

function valueOf(message: Message): unknown {
  const part = message.parts.find(part => 'data' in part)
  return part && 'data' in part ? part.data : textOf(message)
}

function validated(schema: AnswerSchema<unknown>, value: unknown, field: string): { answer: unknown } | { violations: FieldViolation[] } {
  const result = schema['~standard'].validate(value)
  if ('then' in result) throw new TypeError('The schema of a question has to validate at once: one that waits for a promise cannot be used.')
  if (!result.issues) return { answer: result.value }
  return { violations: result.issues.map(({ message, path = [] }) => ({ field: [field, ...path.map(nameOf)].join('.'), description: message })) }
}

function nameOf(segment: PropertyKey | { readonly key: PropertyKey }): string {
  return String(typeof segment === 'object' ? segment.key : segment)
}
