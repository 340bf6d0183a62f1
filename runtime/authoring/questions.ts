import type { FieldViolation } from '../../machines/protocol/errors.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import type { ToWork } from '../../machines/task-events.ts'
import { validated, type StandardSchema } from '../ports/standard-schema.ts'
import { checkOptions, type OptionKinds } from '../primitives/options.ts'
import { publishedSchema } from './json-schema.ts'
import { contentValue } from './message-data.ts'
import type { Words } from './words.ts'

/** How a question is asked. */
export interface QuestionOptions<T> {
  /** What an answer has to be: an answer that is not is refused, and the question stays. */
  readonly schema?: StandardSchema<T>
  /**
   * What the client is shown of the schema, as JSON Schema of 16 KiB at the most: for schemas of a library that gives none,
   * or to say it in another way. Default: what the library gives (Standard JSON Schema).
   */
  readonly jsonSchema?: Record<string, unknown>
  /** How long to wait for an answer, in milliseconds. Then the question throws DeadlineExceeded. Default: as long as the task may take. */
  readonly deadlineMs?: number
}

const OPTIONS: OptionKinds<QuestionOptions<unknown>> = { schema: true, jsonSchema: true, deadlineMs: true }

/** What comes of asking for an authorization: what arrived out of band, or what the client said instead. */
export type Authorization<T = unknown> = { readonly data: T } | { readonly message: Message }

/** Work asks, and the task is interrupted until there is an answer: `yield*` it in a generator, `ask` it in a function. */
export interface Question<Answer = unknown> {
  readonly type: 'input-required' | 'auth-required'
  readonly message: Words
  readonly options: QuestionOptions<unknown>
  /** The JSON Schema of the answer, as the client sees it. */
  readonly answerSchema?: Record<string, unknown>
  /** The type of the answer; there is no such member. */
  readonly answer?: Answer
  [Symbol.iterator](): Generator<Question<Answer>, Answer>
}

/**
 * Asks the client (TASK_STATE_INPUT_REQUIRED). The answer is the client's message; with a `schema` it is the value of its
 * first data part, or else its text, as the schema gives it, and the question shows the client what the schema takes. Throws
 * TypeError for an option that is none, RangeError for a JSON Schema that is too long to be shown.
 */
export function inputRequired(message: Words): Question<Message>
export function inputRequired(message: Words, options: { readonly schema?: never; readonly jsonSchema?: never; readonly deadlineMs: number }): Question<Message>
export function inputRequired<T>(message: Words, options: QuestionOptions<T> & { readonly schema: StandardSchema<T> }): Question<T>
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
    const checked = schema ? validated(schema, given.data, 'data') : { value: given.data }
    return 'value' in checked ? { answer: { data: checked.value } } : checked
  }
  if (given.type !== 'message.received') return { violations: [{ field: 'data', description: 'is not what the task waits for: it asks for a message' }] }
  if (!schema) return { answer: given.message }
  const checked = validated(schema, contentValue(given.message), 'message.parts')
  return 'value' in checked ? { answer: checked.value } : checked
}

function question(type: Question['type'], message: Words, options: QuestionOptions<unknown>): Question {
  checkOptions(options, OPTIONS, 'A question', "inputRequired('Which day?', { schema })")
  const answerSchema = publishedSchema(options)
  const asked: Question = {
    type, message, options,
    ...(answerSchema && { answerSchema }),
    // What a generator yields is the question; what it gets back is the answer.
    *[Symbol.iterator]() {
      return yield asked
    }
  }
  return asked
}
