import { isA2AError } from '../../machines/protocol/errors.ts'
import { stateText, type TaskState } from '../../machines/protocol/states.ts'
import { reworded, withMethods, type MethodNames } from './reworded.ts'

const METHODS: MethodNames = new Map([
  ['SendMessage', 'message/send'],
  ['SendStreamingMessage', 'message/stream'],
  ['GetTask', 'tasks/get'],
  ['CancelTask', 'tasks/cancel'],
  ['SubscribeToTask', 'tasks/resubscribe']
])

/** An error in the words of 0.3: its names of states, methods and members. Anything but an A2AError stays as it is. */
export function toError03(error: unknown): unknown {
  if (!isA2AError(error)) return error
  const { state } = error.metadata
  return reworded(error, { text, field, ...(state !== undefined && { metadata: { state: text(state) } }) })
}

function text(words: string): string {
  return withMethods(words, METHODS)
    .replaceAll('taskPushNotificationConfig', 'pushNotificationConfig')
    .replaceAll(/\bTASK_STATE_\w+/g, state => stateText(state as TaskState))
}

/** A webhook of its own is a member of the params in 0.3, and its scheme is one of several. */
function field(name: string): string {
  return text(name)
    .replace(/^(?=(?:url|token|authentication)\b)/, 'pushNotificationConfig.')
    .replace(/\.scheme$/, '.schemes')
}
