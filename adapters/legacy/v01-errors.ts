import { isObject } from '../../machines/protocol/codec/json.ts'
import { isA2AError, type ErrorCode } from '../../machines/protocol/errors.ts'
import { isTerminal, type TaskState } from '../../machines/protocol/states.ts'
import { reworded, withMethods, type MethodNames } from './reworded.ts'
import { STATES_01 } from './v01-answers.ts'

/** Replacements for errors that 0.1 lacks. */
const CODES: ReadonlyMap<ErrorCode, ErrorCode> = new Map([
  ['InvalidAgentResponse', 'InternalError'],
  ['ExtensionSupportRequired', 'InvalidRequest'],
  ['TaskGenerationMismatch', 'UnsupportedOperation']
])

const METHODS: MethodNames = new Map([
  ['SendMessage', 'tasks/send'],
  ['SendStreamingMessage', 'tasks/sendSubscribe'],
  ['GetTask', 'tasks/get'],
  ['CancelTask', 'tasks/cancel'],
  ['SubscribeToTask', 'tasks/resubscribe']
])

/** An error in the form of 0.1: with its codes, its form of data, the client's id of the task, and its name for the context. */
export function toError01(error: unknown, params: unknown): unknown {
  if (!isA2AError(error)) return error
  const id = isObject(params) && typeof params.id === 'string' ? params.id : ''
  const { taskId, state } = error.metadata
  const own = (text: string) => worded(taskId === undefined ? text : text.replaceAll(taskId, id))
  const isOver = error.code === 'UnsupportedOperation' && state !== undefined && isTerminal(state as TaskState)
  return reworded(error, {
    text: text => (isOver ? takesNoMore(id, stateIn01(state)) : own(text)),
    field: name =>
      own(name)
        .replace(/^(?=(?:url|token|authentication)\b)/, 'pushNotificationConfig.')
        .replace(/\.scheme$/, '.schemes'),
    code: code => CODES.get(code) ?? code,
    metadata: { ...(taskId !== undefined && { taskId: id }), ...(state !== undefined && { state: stateIn01(state) }) },
    dataIsObject: true
  })
}

/** A text in the words of 0.1. */
function worded(text: string): string {
  return withMethods(text, METHODS)
    .replaceAll('message.contextId', 'sessionId')
    .replaceAll('the context of', 'the session of')
    .replaceAll(/(?:configuration\.)?taskPushNotificationConfig/g, 'pushNotification')
    .replaceAll(/\bTASK_STATE_\w+/g, stateIn01)
}

function stateIn01(state: string): string {
  return STATES_01[state as TaskState]
}

/** A task of another version keeps its id in 0.1, so the next message needs a new id. */
function takesNoMore(id: string, state: string): string {
  return `Task ${id} is ${state} and takes no more messages. Send the message under an id of your own, with the sessionId of the task.`
}
