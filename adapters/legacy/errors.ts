import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError, type ErrorCode, isA2AError } from '../../machines/protocol/errors.ts'
import { isTerminal, stateText, type TaskState } from '../../machines/protocol/states.ts'
import { STATES_01 } from './v01-answers.ts'

/** Replacements for errors that 0.1 lacks. */
const CODES: ReadonlyMap<ErrorCode, ErrorCode> = new Map([
  ['InvalidAgentResponse', 'InternalError'],
  ['ExtensionSupportRequired', 'InvalidRequest'],
  ['TaskGenerationMismatch', 'UnsupportedOperation']
])

const METHODS_01: MethodNames = new Map([
  ['SendMessage', 'tasks/send'],
  ['SendStreamingMessage', 'tasks/sendSubscribe'],
  ['GetTask', 'tasks/get'],
  ['CancelTask', 'tasks/cancel'],
  ['SubscribeToTask', 'tasks/resubscribe']
])

/**
 * An error in the form of 0.1: with its codes, its form of data, the client's id of the task, and its name for the
 * context.
 */
export function toError01(error: unknown, params: unknown): unknown {
  if (!isA2AError(error)) return error
  const id = isObject(params) && typeof params.id === 'string' ? params.id : ''
  const { taskId, state } = error.metadata
  const own = (text: string) => worded(taskId === undefined ? text : text.replaceAll(taskId, id))
  const isOver = error.code === 'UnsupportedOperation' && state !== undefined && isTerminal(state as TaskState)
  const said = reworded(error, {
    text: text => (isOver ? endedText(id, stateIn01(state)) : own(text)),
    field: name =>
      own(name)
        .replace(/^(?=(?:url|token|authentication)\b)/, 'pushNotificationConfig.')
        .replace(/\.scheme$/, '.schemes'),
    code: code => CODES.get(code) ?? code,
    metadata: { ...(taskId !== undefined && { taskId: id }), ...(state !== undefined && { state: stateIn01(state) }) }
  })
  return withObjectData(said)
}

/** An error whose JSON-RPC `data` is an object with its details, as in 0.1. */
export function withObjectData(error: A2AError): A2AError {
  const { code, message, metadata, violations, retryAfterMs, details, cause } = error
  return new A2AError(code, message, {
    metadata,
    violations,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    data: { details },
    ...(cause !== undefined && { cause })
  })
}

/** A text in the words of 0.1. */
function worded(text: string): string {
  return withMethods(text, METHODS_01)
    .replaceAll('message.contextId', 'sessionId')
    .replaceAll('the context of', 'the session of')
    .replaceAll(/(?:configuration\.)?taskPushNotificationConfig/g, 'pushNotification')
    .replaceAll(/\bTASK_STATE_\w+/g, stateIn01)
}

function stateIn01(state: string): string {
  return STATES_01[state as TaskState]
}

/** A task of another version keeps its id in 0.1, so the next message needs a new id. */
function endedText(id: string, state: string): string {
  return `Task ${id} is ${state} and takes no more messages. Send the message under an id of your own, with the sessionId of the task.`
}

const METHODS_03: MethodNames = new Map([
  ['SendMessage', 'message/send'],
  ['SendStreamingMessage', 'message/stream'],
  ['GetTask', 'tasks/get'],
  ['CancelTask', 'tasks/cancel'],
  ['SubscribeToTask', 'tasks/resubscribe']
])

/** An error in the words of 0.3: its names of states, methods and members. Anything but an A2AError is unchanged. */
export function toError03(error: unknown): unknown {
  if (!isA2AError(error)) return error
  const { state } = error.metadata
  return reworded(error, { text, field, ...(state !== undefined && { metadata: { state: text(state) } }) })
}

function text(words: string): string {
  return withMethods(words, METHODS_03)
    .replaceAll('taskPushNotificationConfig', 'pushNotificationConfig')
    .replaceAll(/\bTASK_STATE_\w+/g, state => stateText(state as TaskState))
}

/** A webhook of its own is a member of the params in 0.3, and its scheme is one of several. */
function field(name: string): string {
  return text(name)
    .replace(/^(?=(?:url|token|authentication)\b)/, 'pushNotificationConfig.')
    .replace(/\.scheme$/, '.schemes')
}

/** The wording of the runtime's errors in an older version. */
interface Wording {
  /** A text in the words of that version. */
  readonly text: (text: string) => string
  /** The name of a member in its requests. */
  readonly field: (field: string) => string
  readonly code?: (code: ErrorCode) => ErrorCode
  /** Changes of the metadata. */
  readonly metadata?: Readonly<Record<string, string>>
}

/** An error in the words of an older version: its message, its metadata, and the fields that it names. */
function reworded(error: A2AError, { text, field, code = code => code, metadata = {} }: Wording): A2AError {
  const { message, violations, retryAfterMs } = error
  const newViolations = violations.map(violation => ({
    field: field(violation.field),
    description: text(violation.description)
  }))
  const named = violations.reduce(
    (words, { field, description }, index) =>
      words.replace(`${field} ${description}`, `${newViolations[index]?.field} ${description}`),
    message
  )
  return new A2AError(code(error.code), text(named), {
    metadata: { ...error.metadata, ...metadata },
    violations: newViolations,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    cause: error
  })
}

/** The methods of an older version, by those of 1.0. */
type MethodNames = ReadonlyMap<string, string>

/** Replaces the names of methods in a text. */
function withMethods(text: string, names: MethodNames): string {
  return text.replaceAll(/\b[A-Z][a-z]+[A-Z]\w+\b/g, word => names.get(word) ?? word)
}
