import type { Message, Part, Task } from '../../../machines/protocol/objects.ts'
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

/**
 * The content of a message: a text, parts, or any other JSON value. Such a value is sent as data, for instance the
 * value of a form.
 */
export type Content = string | readonly Part[] | { readonly data: unknown }

/** The parts of a message with this content. */
export function toParts(content: Content): Part[] {
  if (typeof content === 'string') return [{ text: content }]
  return 'data' in content ? [{ data: content.data } as Part] : [...content]
}

/**
 * A value that changes, in the form of React's `useSyncExternalStore`. Snapshots are never changed in place. The
 * functions may be passed on without their object.
 */
export interface Watched<T> {
  readonly snapshot: () => T
  /** Calls `listener` after each change. Returns its removal. */
  readonly subscribe: (listener: () => void) => () => void
}

/** The owner's side of a watched value. */
export class Changing<T extends object> implements Watched<T> {
  readonly #listeners = new Set<() => void>()
  #value: T

  constructor(value: T) {
    this.#value = value
  }

  // A property, so that it can be passed on without its object.
  readonly snapshot = (): T => this.#value

  readonly subscribe = (listener: () => void): (() => void) => {
    const own = () => listener()
    this.#listeners.add(own)
    return () => void this.#listeners.delete(own)
  }

  change(changes: Partial<T>): void {
    this.#value = { ...this.#value, ...changes }
    for (const listener of this.#listeners) listener()
  }
}
