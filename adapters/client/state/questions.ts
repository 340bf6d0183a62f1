import type { Task } from '../../../machines/protocol/objects.ts'
import type { Message, Part } from '../../../machines/protocol/parts.ts'
import { isInterrupted } from '../../../machines/protocol/states.ts'
import { checkArgument, withMembers } from '../../../runtime/primitives/options.ts'
import { answerSchemaOf, textOf } from '../messages.ts'

/** A task that waits for its client. */
export interface OpenQuestion {
  readonly taskId: string
  /** Whether the task waits for an answer, or for an authorization. */
  readonly kind: 'input' | 'authorization'
  /** The text of the question; empty if there is none. */
  readonly text: string
  /** The JSON Schema of the answer, for a form; `undefined` if the agent gives none. It is untrusted JSON. */
  readonly schema: Record<string, unknown> | undefined
  /** The agent's message, whose other parts may have more. */
  readonly message: Message | undefined
}

/** The question that a task waits with; `undefined` if it does not wait. */
export function questionOf(task: Task): OpenQuestion | undefined {
  checkArgument(task, withMembers(['id', 'status'], 'a task'), 'questionOf(task)')
  const {
    id,
    status: { state, message }
  } = task
  if (!isInterrupted(state)) return undefined
  return {
    taskId: id,
    kind: state === 'TASK_STATE_AUTH_REQUIRED' ? 'authorization' : 'input',
    text: textOf(message),
    schema: answerSchemaOf(message),
    message
  }
}

/** The content of a message: a text, parts, or any other JSON value. Such a value is sent as data, for instance the value of a form. */
export type Content = string | readonly Part[] | { readonly data: unknown }

/** The parts of a message with this content. */
export function partsOf(content: Content): Part[] {
  if (typeof content === 'string') return [{ text: content }]
  return 'data' in content ? [{ data: content.data } as Part] : [...content]
}
