import { createHash } from 'node:crypto'
import { isObject, type JsonValue } from '../../machines/protocol/codec/json.ts'
import { type A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { Part, Task } from '../../machines/protocol/objects.ts'
import { isInterrupted } from '../../machines/protocol/states.ts'
import { ANSWER_SCHEMA, QUESTION, RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import type { CallContext } from '../../runtime/access/call-context.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { wordsIn } from './content.ts'
import { elicitedForm, type ElicitedForm, type FormSchema } from './form.ts'

/** The abilities that a client has declared. */
export interface Abilities {
  /** It knows tasks (the extension `io.modelcontextprotocol/tasks`). */
  readonly tasks: boolean
  /** It shows its user forms, and URLs. */
  readonly form: boolean
  readonly url: boolean
}

/** A request of the server to the user of a client. */
export interface Elicitation {
  readonly method: 'elicitation/create'
  readonly params:
    | { readonly mode: 'form'; readonly message: string; readonly requestedSchema: FormSchema }
    | { readonly mode: 'url'; readonly message: string; readonly url: string }
}

/** The response of a client's user to a question, which nobody has checked: `action`, and perhaps `content`. */
export type UserResponse = Readonly<Record<string, unknown>>

/** The open question of a task. */
export interface TaskQuestion {
  /** Unique in the task. A question that is asked again has another one. */
  readonly key: string
  readonly words: string
  /** The JSON Schema of its answer, if it has one. */
  readonly schema: unknown
  readonly task: Task
  /** The `messageId` of the message that asks. */
  readonly messageId: string
  /** Where its user authorizes the task, if the agent names that. */
  readonly url: string | undefined
  readonly note: QuestionNote
  /** The note as it is stored. */
  readonly stored: JsonValue | undefined
}

/** How often a question was asked again, and why: the row of the task's question in the store. */
interface QuestionNote {
  readonly question: string
  /** From 1. */
  readonly attempt: number
  readonly refused: number
  readonly isDismissed: boolean
  /** Why it is asked again; empty the first time. */
  readonly reason: string
}

/** Options of questions. */
export interface ElicitationOptions {
  /** The effect of a user's no. Default: a message if the question takes one, else the task is canceled. */
  readonly declined?: 'message' | 'cancel' | undefined
  /** Whether forms have only texts and choices, for hosts that show no numbers. */
  readonly plainForms?: boolean | undefined
}

/** So many refused answers cancel the task: a host that answers by itself would go on for ever. */
const MOST_REFUSED = 5
const YEAR_MS = 365 * 24 * 60 * 60 * 1000
const DISMISSED = 'The question was dismissed without an answer.'
const AUTHORIZATION_FORM: ElicitedForm = {
  schema: {
    type: 'object',
    properties: {
      answer: { type: 'string', description: 'Words for the agent, if it needs any. Never a password or a key.' }
    }
  },
  partOf: ({ answer }) => ({ text: typeof answer === 'string' ? answer : '' })
}

/** The questions of tasks as elicitations, and their answers. */
export class Questions {
  readonly #runtime: ServedRuntime
  readonly #options: ElicitationOptions

  constructor(runtime: ServedRuntime, options: ElicitationOptions) {
    this.#runtime = runtime
    this.#options = options
  }

  /** The open question of a task; `undefined` if it asks nothing. */
  async openOf(task: Task, call: CallContext): Promise<TaskQuestion | undefined> {
    const { state, message } = task.status
    if (!isInterrupted(state) || !message) return undefined
    const stored = await this.#runtime.readNote(noteName(task.id), call)
    const known = noteIn(stored)
    const { messageId } = message
    const isSame = known?.question === messageId
    const note = isSame ? known : { question: messageId, attempt: 1, refused: 0, isDismissed: false, reason: '' }
    const url = state === 'TASK_STATE_AUTH_REQUIRED' ? urlIn(message.parts) : undefined
    const words = wordsIn(message.parts)
    return {
      key: note.attempt === 1 ? messageId : `${messageId}.${note.attempt}`,
      words: note.reason === '' ? words : `${note.reason}\n\n${words}`,
      schema: message.metadata?.[ANSWER_SCHEMA],
      task,
      messageId,
      url,
      note,
      stored
    }
  }

  /** A question as a request to the client's user; `undefined` if the client cannot ask it. */
  elicitationOf(question: TaskQuestion, { form, url }: Abilities): Elicitation | undefined {
    const message = question.words
    if (question.url !== undefined && url)
      return { method: 'elicitation/create', params: { mode: 'url', message, url: question.url } }
    if (!form) return undefined
    const requestedSchema = this.#formOf(question).schema
    return { method: 'elicitation/create', params: { mode: 'form', message, requestedSchema } }
  }

  /** Why a task was canceled here; `undefined` if it was not. */
  async cancelReason({ id }: Task, call: CallContext): Promise<string | undefined> {
    const note = noteIn(await this.#runtime.readNote(noteName(id), call))
    return note && note.refused >= MOST_REFUSED ? note.reason : undefined
  }

  /**
   * Takes the response of a client's user to a question. An answer that the question refuses is asked for again, under
   * a new key, with the reason; the fifth cancels the task. A response to a question that is no longer open does nothing.
   */
  async answer(question: TaskQuestion, response: UserResponse, { url }: Abilities, call: CallContext): Promise<void> {
    const { action, content } = response
    const given = isObject(content) ? content : {}
    if (action === 'decline') return this.#decline(question, call)
    if (action === 'cancel') {
      if (question.note.isDismissed) return this.#decline(question, call)
      return this.#askAgain(question, { isDismissed: true, reason: DISMISSED }, call)
    }
    // The user has only agreed to open the page: the task goes on when it is authorized.
    if (action !== 'accept' || (question.url !== undefined && url)) return undefined
    const part = this.#formOf(question).partOf(given)
    if (question.task.status.state === 'TASK_STATE_AUTH_REQUIRED' && 'text' in part && part.text === '')
      return undefined
    const reason = await this.#send(question, part, call)
    return reason === undefined ? undefined : this.#refuse(question, reason, call)
  }

  #formOf({ schema, task }: TaskQuestion): ElicitedForm {
    if (task.status.state === 'TASK_STATE_AUTH_REQUIRED') return AUTHORIZATION_FORM
    return elicitedForm(schema, { plain: this.#options.plainForms })
  }

  /** Sends an answer. Gives the reason if the question refuses it. */
  async #send(
    { task, key, messageId: question }: TaskQuestion,
    part: Part,
    call: CallContext
  ): Promise<string | undefined> {
    const digest = createHash('sha256')
      .update(JSON.stringify([task.id, key, part]))
      .digest('base64url')
    try {
      await this.#runtime.sendMessage(
        {
          message: {
            messageId: `mcp-${digest}`,
            taskId: task.id,
            role: 'ROLE_USER',
            parts: [part],
            metadata: { [QUESTION]: question }
          },
          configuration: { returnImmediately: true, historyLength: 0 }
        },
        // A repeated response reaches the task once.
        { ...call, extensions: [RELIABILITY_EXTENSION] }
      )
      return undefined
    } catch (error) {
      if (!isA2AError(error)) throw error
      if (error.code === 'InvalidParams') return reasonOf(error)
      if (error.code !== 'UnsupportedOperation') throw error
      // The chart has no transition for this answer, or the task has moved on: its deadline, or another answer.
      const { status } = await this.#runtime.getTask({ id: task.id, historyLength: 0 }, call)
      return isInterrupted(status.state) && status.message?.messageId === question ? error.message : undefined
    }
  }

  async #refuse(question: TaskQuestion, reason: string, call: CallContext): Promise<void> {
    const refused = question.note.refused + 1
    const isLast = refused >= MOST_REFUSED
    const words = isLast
      ? `${refused} answers were refused, the last one because: ${reason}`
      : `Not accepted: ${reason}`
    await this.#askAgain(question, { refused, reason: words }, call)
    if (isLast) await this.#cancel(question, call)
  }

  /** A no: a message that says so if the question takes one, else the end of the task. */
  async #decline(question: TaskQuestion, call: CallContext): Promise<void> {
    const { declined } = this.#options
    if (declined === 'cancel' || question.task.status.state === 'TASK_STATE_AUTH_REQUIRED')
      return this.#cancel(question, call)
    const part = approvalIn(question.schema) ? { data: { approved: false, reason: 'declined' } } : { text: 'declined' }
    const refusal = await this.#send(question, part, call)
    if (refusal === undefined) return undefined
    return declined === 'message' ? this.#refuse(question, refusal, call) : this.#cancel(question, call)
  }

  async #cancel({ task }: TaskQuestion, call: CallContext): Promise<void> {
    await cancelUnlessEnded(this.#runtime, task.id, call)
  }

  async #askAgain(
    { note, task, stored }: TaskQuestion,
    changes: Partial<QuestionNote>,
    call: CallContext
  ): Promise<void> {
    const value = { ...note, attempt: note.attempt + 1, ...changes }
    const { id, contextId = '' } = task
    await this.#runtime.writeNote({ name: noteName(id), contextId, before: stored, value, storedMs: YEAR_MS }, call)
  }
}

/** The error for a task that a client cannot read. */
export const NO_TASK = 'There is no such task.'

/** Cancels a task; nothing if it has ended. */
export async function cancelUnlessEnded(runtime: ServedRuntime, id: string, call: CallContext): Promise<void> {
  try {
    await runtime.cancelTask({ id }, call)
  } catch (error) {
    if (!isA2AError(error) || error.code !== 'TaskNotCancelable') throw error
  }
}

/** Why something was refused: its violations, by the fields that a form has. */
export function reasonOf({ violations }: Pick<A2AError, 'violations'>): string {
  return violations
    .map(({ field, description }) => `${field.replace(/^message\.parts\.?/, '')} ${description}`.trim())
    .join('; ')
}

function noteName(taskId: string): string {
  return `mcp ${taskId}`
}

function noteIn(value: JsonValue | undefined): QuestionNote | undefined {
  return isObject(value) ? (value as unknown as QuestionNote) : undefined
}

function urlIn(parts: readonly Part[]): string | undefined {
  const urls = parts.flatMap(part => ('url' in part && /^https?:/i.test(part.url) ? [part.url] : []))
  return urls[0]
}

/** Whether a question is one for an approval: yes or no. */
function approvalIn(schema: unknown): boolean {
  const properties = isObject(schema) ? schema['properties'] : undefined
  const approved = isObject(properties) ? properties['approved'] : undefined
  return isObject(approved) && approved['type'] === 'boolean'
}
