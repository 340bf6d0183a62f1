import { isDeepStrictEqual } from 'node:util'
import { isNegotiationPart, offerIn } from '../../../machines/protocol/negotiation.ts'
import type { Part, SendMessageResponse, Task } from '../../../machines/protocol/objects.ts'
import { isInterrupted, isTerminal, type TaskState } from '../../../machines/protocol/states.ts'

/** An answer to `tasks/get`, as the wire has it. */
export interface WireTaskAnswer {
  readonly resultType: string
  readonly taskId: string
  readonly status: string
  readonly statusMessage?: string
  readonly createdAt: string
  readonly lastUpdatedAt: string
  readonly ttlMs: number | null
  readonly inputRequests?: Readonly<Record<string, AnswerRequest>>
  readonly result?: {
    readonly resultType?: string
    readonly isError?: boolean
    readonly content: readonly Block[]
  }
  readonly error?: unknown
}

/** A question to the host's user. */
interface AnswerRequest {
  readonly method: string
  readonly params: {
    readonly mode: string
    readonly message: string
    readonly url?: string
    readonly requestedSchema?: { readonly properties: Readonly<Record<string, unknown>> }
  }
}

/** A block of content of any type. */
interface Block {
  readonly type: string
  readonly text?: string
  readonly data?: string
  readonly uri?: string
  readonly resource?: { readonly text?: string; readonly blob?: string }
}

/** The result of a call of a tool, as the wire has it: contents, the handle of a task, or an offer as a form. */
export interface WireCallResult {
  readonly isError?: boolean
  readonly content?: readonly Block[]
  readonly taskId?: string
  readonly inputRequests?: Readonly<Record<string, AnswerRequest>>
  readonly requestState?: string
}

/** A rule that an answer breaks. */
export interface Difference {
  readonly what: string
  readonly wanted: unknown
  readonly found: unknown
}

/** The states of the extension `io.modelcontextprotocol/tasks`. */
const STATUS: Readonly<Record<TaskState, 'working' | 'input_required' | 'completed' | 'cancelled'>> = {
  TASK_STATE_SUBMITTED: 'working',
  TASK_STATE_WORKING: 'working',
  TASK_STATE_INPUT_REQUIRED: 'input_required',
  TASK_STATE_AUTH_REQUIRED: 'input_required',
  TASK_STATE_COMPLETED: 'completed',
  TASK_STATE_FAILED: 'completed',
  TASK_STATE_REJECTED: 'completed',
  TASK_STATE_CANCELED: 'cancelled'
}

/** An answer without what differs between two that say the same. */
interface AnswerView {
  readonly resultType: string
  readonly taskId: string
  readonly status: string
  readonly createdAt: string
  readonly lastUpdatedAt: string | undefined
  readonly hasEnd: boolean
  readonly hasError: boolean
  /** The words of an open task, in one line. */
  readonly line: string
  readonly questions: readonly unknown[]
  readonly result: unknown
}

/** Bytes of an artifact's part that stands in a result. A larger one is a link. */
const LARGEST_PART = 1024 * 1024
const LINK = 'taskchart://tasks/'

/** A longer line may be cut. */
const SHOWN = 500

/**
 * The answers to `tasks/get` about one task, over all processes: each has to be the task over A2A, and to be allowed
 * after the one before.
 */
export class TaskAnswers {
  readonly #responded = new Set<string>()
  #last: WireTaskAnswer | undefined

  /** A key of a question that is not open. */
  get staleKey(): string {
    return [...this.#responded].at(-1) ?? 'nobody’s'
  }

  /** The host's user has responded under a key. */
  responded(key: string): void {
    this.#responded.add(key)
  }

  /** Adds an answer. Gives the first thing that is wrong with it, compared with the task over A2A. */
  add(answer: WireTaskAnswer, task: Task): Difference | undefined {
    const last = this.#last
    this.#last = answer
    const createdAt = last?.createdAt ?? answer.createdAt
    const [wanted, found] = [wantedOf(task, createdAt), viewOf(answer, task)]
    if (!isDeepStrictEqual(found, wanted)) return { what: 'tasks/get has to be the task of A2A', wanted, found }
    if (isTerminal(task.status.state) && last && isEnded(last) && !isDeepStrictEqual(answer, last))
      return { what: 'the answer of an ended task has to stay', wanted: last, found: answer }
    return this.#keyDifference(keyIn(answer), last && keyIn(last))
  }

  #keyDifference(key: string | undefined, before: string | undefined): Difference | undefined {
    if (key === undefined) return undefined
    if (this.#responded.has(key)) return { what: 'a question has to have a new key', wanted: 'another', found: key }
    if (before === undefined || key === before || baseOf(key) !== baseOf(before) || this.#responded.has(before))
      return undefined
    return { what: 'an open question has to keep its key', wanted: before, found: key }
  }
}

/** The first thing that is wrong with the result of a call, compared with the answer of A2A to its message. */
export function callDifference(result: WireCallResult, answer: SendMessageResponse): Difference | undefined {
  const [wanted, found] = [callViewOf(answer), viewOfCall(result)]
  const what = 'the result of a tool has to be the answer of A2A'
  return isDeepStrictEqual(found, wanted) ? undefined : { what, wanted, found }
}

/** The id of the task in a result: a handle, or the last of its texts. */
export function taskIdIn({ taskId, content = [] }: WireCallResult): string | undefined {
  return taskId ?? /^taskId: (\S+)$/m.exec(content.at(-1)?.text ?? '')?.[1]
}

/** What a host has to get for an answer of A2A. */
function callViewOf(answer: SendMessageResponse): unknown {
  if ('task' in answer) return { taskId: answer.task.id }
  const { parts } = answer.message
  const offer = offerIn(answer.message)
  if (!offer) return { contents: contentsOf(parts, false) }
  const words = wordsIn(parts.filter(part => !isNegotiationPart(part)))
  return { offerId: offer.offerId, words: `${words}${words === '' ? '' : '\n'}Terms: ${JSON.stringify(offer.terms)}` }
}

function viewOfCall(result: WireCallResult): unknown {
  const taskId = taskIdIn(result)
  if (taskId !== undefined) return { taskId }
  const [[offerId, asked] = []] = Object.entries(result.inputRequests ?? {})
  if (asked) return { offerId, words: asked.params.message }
  return { contents: (result.content ?? []).slice(0, -1).map(contentOf) }
}

/** The id of the message that asks, in the key of a question, which may have been asked again. */
export function baseOf(key: string): string {
  return key.replace(/\.\d+$/, '')
}

/** How often a question was asked, from 1, by its key. */
export function attemptIn(key: string): number {
  return Number(/\.(\d+)$/.exec(key)?.[1] ?? 1)
}

function keyIn({ inputRequests = {} }: WireTaskAnswer): string | undefined {
  return Object.keys(inputRequests)[0]
}

function isEnded({ status }: WireTaskAnswer): boolean {
  return status === 'completed' || status === 'cancelled'
}

/** The view that an answer about a task has to give. */
function wantedOf({ id, status: { state, message, timestamp }, artifacts = [] }: Task, createdAt: string): AnswerView {
  const parts = message?.parts ?? []
  const url = state === 'TASK_STATE_AUTH_REQUIRED' ? urlIn(parts) : undefined
  const question = { base: message?.messageId, mode: url === undefined ? 'form' : 'url', words: wordsIn(parts), url }
  const result = {
    resultType: 'complete',
    isError: state !== 'TASK_STATE_COMPLETED',
    contents: [...contentsOf(parts, false), ...artifacts.flatMap(artifact => contentsOf(artifact.parts, true))]
  }
  return {
    resultType: 'complete',
    taskId: id,
    status: STATUS[state],
    createdAt,
    lastUpdatedAt: timestamp,
    hasEnd: isTerminal(state),
    hasError: false,
    line: isTerminal(state) ? '' : lineOf(wordsIn(parts)),
    questions: isInterrupted(state) ? [question] : [],
    result: STATUS[state] === 'completed' ? result : undefined
  }
}

/** The view that an answer gives. A question that is asked again begins with the reason, and a long line is cut. */
function viewOf(answer: WireTaskAnswer, { status: { state, message } }: Task): AnswerView {
  const { resultType, taskId, status, statusMessage = '', createdAt, lastUpdatedAt, ttlMs, result } = answer
  const words = wordsIn(message?.parts ?? [])
  const line = lineOf(words)
  const isSame = line === '' ? statusMessage === '' : statusMessage.includes(line.slice(0, SHOWN))
  return {
    resultType,
    taskId,
    status,
    createdAt,
    lastUpdatedAt,
    // It may be null for ever.
    hasEnd: isTerminal(state) || ttlMs !== null,
    hasError: 'error' in answer,
    line: isTerminal(state) ? '' : isSame ? line : statusMessage,
    questions: Object.entries(answer.inputRequests ?? {}).map(([key, { params }]) => ({
      base: baseOf(key),
      mode: params.mode,
      words: params.message.endsWith(words) ? words : params.message,
      url: params.url
    })),
    result: result && {
      resultType: result.resultType,
      isError: result.isError ?? false,
      // The last block has the ids.
      contents: result.content.slice(0, -1).map(contentOf)
    }
  }
}

function lineOf(words: string): string {
  return words.replace(/\s+/g, ' ').trim()
}

/** Texts and URLs, or else data as JSON. */
function wordsIn(parts: readonly Part[]): string {
  const words = parts.flatMap(part => ('text' in part ? [part.text] : 'url' in part ? [part.url] : []))
  const data = parts.flatMap(part => ('data' in part ? [JSON.stringify(part.data)] : []))
  return (words.length > 0 ? words : data).join('\n')
}

function urlIn(parts: readonly Part[]): string | undefined {
  return parts.flatMap(part => ('url' in part && /^https?:/i.test(part.url) ? [part.url] : []))[0]
}

/** The contents of parts, of which texts that follow each other are one. */
function contentsOf(parts: readonly Part[], isArtifact: boolean): string[] {
  const contents: { readonly isText: boolean; readonly content: string }[] = []
  for (const part of parts) {
    const content = contentIn(part)
    const last = contents.at(-1)
    const isText = 'text' in part
    if (last?.isText && isText) contents.splice(-1, 1, { isText, content: last.content + content })
    else contents.push({ isText, content })
  }
  return contents.map(({ content }) => (isArtifact && Buffer.byteLength(content) > LARGEST_PART ? LINK : content))
}

function contentIn(part: Part): string {
  if ('text' in part) return part.text
  if ('data' in part) return JSON.stringify(part.data)
  if ('url' in part) return part.url
  return part.mediaType?.startsWith('text/') ? Buffer.from(part.raw, 'base64').toString() : part.raw
}

function contentOf({ text, data, uri, resource }: Block): string {
  const content = [text, data, resource?.text, resource?.blob, uri].find(each => each !== undefined) ?? ''
  return content.startsWith(LINK) ? LINK : content
}
