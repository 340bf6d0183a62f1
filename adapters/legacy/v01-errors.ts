import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError, isA2AError, type ErrorCode } from '../../machines/protocol/errors.ts'
import { isTerminal, type TaskState } from '../../machines/protocol/states.ts'
import { STATES_01 } from './v01-answers.ts'

/** Replacements for errors that 0.1 lacks. */
const CODES: ReadonlyMap<ErrorCode, ErrorCode> = new Map([
  ['InvalidAgentResponse', 'InternalError'],
  ['ExtensionSupportRequired', 'InvalidRequest'],
  ['TaskGenerationMismatch', 'UnsupportedOperation']
])

/** An error in the form of 0.1: with its codes, its form of data, the client's id of the task, and its name for the context. */
export function toError01(error: unknown, params: unknown): unknown {
  if (!isA2AError(error)) return error
  const id = isObject(params) ? String(params.id) : ''
  const { code, message, metadata, violations, retryAfterMs } = error
  const { taskId, state } = metadata
  const own = (text: string) => {
    const ofClient = taskId === undefined ? text : text.replaceAll(taskId, id)
    return ofClient.replaceAll('message.contextId', 'sessionId').replaceAll('the context of', 'the session of').replaceAll(/TASK_STATE_\w+/g, stateIn01)
  }
  const isOver = code === 'UnsupportedOperation' && state !== undefined && isTerminal(state as TaskState)
  return new A2AError(CODES.get(code) ?? code, isOver ? takesNoMore(id, stateIn01(state)) : own(message), {
    metadata: { ...metadata, ...(taskId !== undefined && { taskId: id }), ...(state !== undefined && { state: stateIn01(state) }) },
    violations: violations.map(({ field, description }) => ({ field: own(field), description: own(description) })),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    dataIsObject: true,
    cause: error
  })
}

function stateIn01(state: string): string {
  return STATES_01[state as TaskState]
}

/** A task of another version keeps its id in 0.1, so the next message needs a new id. */
function takesNoMore(id: string, state: string): string {
  return `Task ${id} is ${state} and takes no more messages. Send the message under an id of your own, with the sessionId of the task.`
}
