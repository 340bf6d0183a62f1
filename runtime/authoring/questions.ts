import type { FieldViolation } from '../../machines/protocol/errors.ts'
import type { Message } from '../../machines/protocol/objects.ts'
import type { ToWork } from '../../machines/task-events.ts'
import { validateValue, type StandardSchema } from '../ports/standard-schema.ts'
import { checkOptions, type OptionKinds } from '../primitives/options.ts'
import { contentValue, publishedSchema } from './input-schema.ts'
import { ASK_FIRST, isQuestionType, trackWord, type Words } from './words.ts'

/** Options of a question. */
export interface QuestionOptions<T> {
  /** Validates answers. An invalid answer is refused, and the question stays open. */
  readonly schema?: StandardSchema<T>
  /**
   * The JSON Schema that the client sees, of at most 16 KiB. Default: the one that the schema's library provides
   * (Standard JSON Schema), if any.
   */
  readonly jsonSchema?: Record<string, unknown>
  /**
   * Time limit for an answer, in milliseconds. After it, the question throws DeadlineExceeded. Default: none but that
   * of the task.
   */
  readonly deadlineMs?: number
}

const OPTIONS: OptionKinds<QuestionOptions<unknown>> = { schema: true, jsonSchema: true, deadlineMs: true }

/** Answer to an authorization request: the data that arrived out of band, or a message of the client's. */
export type Authorization<T = unknown> = { readonly data: T } | { readonly message: Message }

/**
 * A question of work. It interrupts the task until it is answered. In a generator `yield*` it, in a function `ask` it.
 */
export interface Question<Answer = unknown> {
  readonly type: 'input-required' | 'auth-required'
  readonly message: Words
  readonly options: QuestionOptions<unknown>
  /** JSON Schema of the answer, as the client sees it. */
  readonly answerSchema?: Record<string, unknown>
  /** Carries the answer's type; never set. */
  readonly answer?: Answer
  [Symbol.iterator](): Generator<Question<Answer>, Answer>
  [Symbol.toPrimitive]?(): never
}

/**
 * Asks the client (TASK_STATE_INPUT_REQUIRED). The answer is the client's message. With a `schema` it is the message's
 * first data part, else its text, as the schema parses it, and the client sees the JSON Schema. Throws TypeError for an
 * unknown option, RangeError for a JSON Schema of more than 16 KiB.
 */
export function inputRequired(message: Words): Question<Message>
export function inputRequired(
  message: Words,
  options: { readonly schema?: never; readonly jsonSchema?: never; readonly deadlineMs: number }
): Question<Message>
export function inputRequired<T>(
  message: Words,
  options: QuestionOptions<T> & { readonly schema: StandardSchema<T> }
): Question<T>
export function inputRequired(message: Words, options: QuestionOptions<unknown> = {}): Question<never> {
  return question('input-required', message, options) as Question<never>
}

/**
 * Asks for an authorization (TASK_STATE_AUTH_REQUIRED, §7.6), which arrives out of band through
 * `runtime.authorized(…)`. A `schema` validates its data. The client may answer with a message instead.
 */
export function authRequired<T = unknown>(
  message: Words,
  options: QuestionOptions<T> = {}
): Question<Authorization<T>> {
  return question('auth-required', message, options) as Question<Authorization<T>>
}

export function isQuestion(word: unknown): word is Question {
  return typeof word === 'object' && word !== null && 'options' in word && 'type' in word && isQuestionType(word.type)
}

/** The parsed answer to a question, or violations. Throws TypeError for an asynchronous schema. */
export function answerTo(
  { type, options }: Question,
  given: ToWork
): { readonly answer: unknown } | { readonly violations: FieldViolation[] } {
  const { schema } = options
  if (type === 'auth-required') {
    if (given.type === 'message.received') return { answer: { message: given.message } }
    const checked = schema ? validateValue(schema, given.data, 'data') : { value: given.data }
    return 'value' in checked ? { answer: { data: checked.value } } : checked
  }
  if (given.type !== 'message.received')
    return {
      violations: [
        { field: 'data', description: 'is not expected: the task waits for a message, not for an authorization' }
      ]
    }
  if (!schema) return { answer: given.message }
  const checked = validateValue(schema, contentValue(given.message), 'message.parts')
  return 'value' in checked ? { answer: checked.value } : checked
}

function question(type: Question['type'], message: Words, options: QuestionOptions<unknown>): Question {
  checkOptions(options, OPTIONS, 'A question', "inputRequired('Which day?', { schema })")
  const answerSchema = publishedSchema(options)
  const made: Question = {
    type,
    message,
    options,
    ...(answerSchema && { answerSchema }),
    *[Symbol.iterator]() {
      return yield made
    },
    // For a text or a number that is made of the question instead of its answer.
    [Symbol.toPrimitive]() {
      throw new TypeError(`This is a question. ${ASK_FIRST}`)
    }
  }
  return trackWord(made)
}
