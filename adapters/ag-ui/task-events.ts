import { isObject } from '../../machines/protocol/codec/json.ts'
import { isNegotiationPart, offerIn } from '../../machines/protocol/negotiation.ts'
import type { Artifact, Message, StreamResponse, Task } from '../../machines/protocol/objects.ts'
import { isInterrupted, isTerminal, stateText } from '../../machines/protocol/states.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import { MODEL_METADATA } from '../ai/conversation.ts'
import { answerSchemaOf } from '../client/messages.ts'
import { foldTask } from '../client/state/fold-task.ts'
import { wordsIn } from '../mcp/content.ts'
import type { RunInput } from './run-input.ts'

/** One event of AG-UI. The types are its own, so that no package is needed. */
export type AgUiEvent =
  | { readonly type: 'RUN_STARTED'; readonly threadId: string; readonly runId: string }
  | ({ readonly type: 'RUN_FINISHED'; readonly threadId: string; readonly runId: string } & RunEnd)
  | { readonly type: 'RUN_ERROR'; readonly message: string; readonly code: string }
  | { readonly type: 'TEXT_MESSAGE_START'; readonly messageId: string; readonly role: 'assistant' }
  | { readonly type: 'TEXT_MESSAGE_CONTENT'; readonly messageId: string; readonly delta: string }
  | { readonly type: 'TEXT_MESSAGE_END'; readonly messageId: string }
  | { readonly type: 'STATE_SNAPSHOT'; readonly snapshot: Readonly<Record<string, unknown>> }
  | { readonly type: 'STATE_DELTA'; readonly delta: readonly Change[] }
  | { readonly type: 'MESSAGES_SNAPSHOT'; readonly messages: readonly ThreadMessage[] }
  | ({ readonly type: 'ACTIVITY_SNAPSHOT'; readonly messageId: string; readonly replace: true } & Activity)

/** The end of a run that has not failed. */
export interface RunEnd {
  readonly outcome?:
    | { readonly type: 'success' | 'cancelled' }
    | { readonly type: 'interrupt'; readonly interrupts: readonly Interrupt[] }
  readonly result?: { readonly taskId: string; readonly artifacts: readonly Artifact[] }
  readonly usage?: readonly Readonly<Record<string, number>>[]
}

/** A question to the user of the front end. */
export interface Interrupt {
  readonly id: string
  readonly reason: 'input-required' | 'auth-required'
  readonly message: string
  readonly responseSchema?: Readonly<Record<string, unknown>>
  readonly metadata: { readonly taskId: string; readonly url?: string }
}

/** One change of the state (RFC 6902). */
interface Change {
  readonly op: 'add' | 'replace' | 'remove'
  readonly path: string
  readonly value?: unknown
}

/** A message of the thread, for a page that has none. */
export interface ThreadMessage {
  readonly id: string
  readonly role: 'user' | 'assistant'
  readonly content: string
}

interface Activity {
  readonly activityType: 'task-progress' | 'offer'
  readonly content: Readonly<Record<string, unknown>>
}

/** A text message of a run: what the client has of it. */
interface ToldText {
  messageId: string
  text: string
  isOpen: boolean
}

/** The task of a run, as events of AG-UI. */
export class AgUiTask {
  readonly #input: RunInput
  readonly #questionsAre: 'interrupt' | 'message'
  /** The texts that the client has from earlier runs, by the ids of their messages. */
  readonly #known: Map<string, string>
  readonly #told = new Map<string, ToldText>()
  /** The artifacts that are text messages, by their ids. */
  readonly #texts = new Set<string>()
  /** The task with everything that its events say. */
  #folded: Task | undefined
  /** The task in the state of the client. */
  #shown: Task | undefined

  constructor(input: RunInput, questionsAre: 'interrupt' | 'message') {
    this.#input = input
    this.#known = new Map(input.texts)
    this.#questionsAre = questionsAre
  }

  /** The task; `undefined` before its first event. */
  get task(): Task | undefined {
    return this.#folded
  }

  /** The events for one item of a stream. */
  *of(item: StreamResponse): Generator<AgUiEvent, void, undefined> {
    if ('message' in item) yield* this.#reply(item.message)
    else yield* this.#taskItem(item)
  }

  *#taskItem(item: Exclude<StreamResponse, { message: Message }>): Generator<AgUiEvent, void, undefined> {
    const before = this.#shown
    // Only a message alone gives no task.
    this.#folded = foldTask(this.#folded, item) as Task
    const task = shownTask(this.#folded)
    this.#shown = task
    if (before) {
      const delta = changesOf(before, task)
      if (delta.length > 0) yield { type: 'STATE_DELTA', delta }
    } else yield { type: 'STATE_SNAPSHOT', snapshot: { ...this.#input.state, task } }
    if ('artifactUpdate' in item) yield* this.#artifactUpdate(item.artifactUpdate, task)
    else {
      if ('task' in item)
        for (const artifact of task.artifacts ?? []) if (isStreamed(artifact)) yield* this.#tellArtifact(task, artifact)
      if (before?.status.message?.messageId !== task.status.message?.messageId) yield* progressOf(task)
    }
  }

  /** The messages of a thread, for a page that has none. `tasks`: the newest first. */
  *thread(tasks: readonly Task[]): Generator<AgUiEvent, void, undefined> {
    const messages = tasks.toReversed().flatMap(threadMessages)
    for (const { id, content } of messages) this.#known.set(id, content)
    if (messages.length > 0) yield { type: 'MESSAGES_SNAPSHOT', messages }
  }

  /** An answer without a task: its text, and its offer. */
  *#reply(message: Message): Generator<AgUiEvent, void, undefined> {
    const { messageId, parts } = message
    const offer = offerIn(message)
    const words = wordsIn(parts.filter(part => !isNegotiationPart(part)))
    yield* this.#tellWhole(messageId, words === '' && offer ? `Terms: ${JSON.stringify(offer.terms)}` : words)
    if (offer)
      yield {
        type: 'ACTIVITY_SNAPSHOT',
        messageId: `${messageId}:offer`,
        activityType: 'offer',
        content: { ...offer },
        replace: true
      }
  }

  /** The events at the end of a run whose task has ended or asks. `reason`: why it asks again. */
  *end(reason: string | undefined): Generator<AgUiEvent, RunEnd | RunFailure, undefined> {
    yield* this.close()
    const task = this.#folded
    if (!task) return { outcome: SUCCESS }
    const { state, message } = task.status
    const words = message ? wordsIn(message.parts) : ''
    if (state === 'TASK_STATE_FAILED' || state === 'TASK_STATE_REJECTED')
      return { code: state, message: words === '' ? `The task was ${stateText(state)}.` : words }
    if (state === 'TASK_STATE_CANCELED')
      // Clients before 1.0 know no such outcome.
      return this.#input.protocolVersion === undefined ? {} : { outcome: { type: 'cancelled' } }
    if (isInterrupted(state)) return yield* this.#question(task, reason)
    if (message && words !== '') yield* this.#tellWhole(message.messageId, words)
    const { artifacts = [] } = task
    const others = artifacts.filter(({ artifactId }) => !this.#texts.has(artifactId))
    // A chat would show nothing of a result that is only in the state.
    if (words === '' && this.#texts.size === 0)
      for (const artifact of artifacts) if (isText(artifact)) yield* this.#tellArtifact(task, artifact)
    yield* this.close()
    return { outcome: SUCCESS, result: { taskId: task.id, artifacts: others }, ...usageOf(task) }
  }

  /** Ends the messages that are open. */
  *close(): Generator<AgUiEvent, void, undefined> {
    for (const told of this.#told.values()) yield* endText(told)
  }

  *#question(task: Task, reason: string | undefined): Generator<AgUiEvent, RunEnd, undefined> {
    const interrupt = interruptOf(task, reason)
    if (this.#questionsAre === 'interrupt') return { outcome: { type: 'interrupt', interrupts: [interrupt] } }
    const messageId = reason === undefined ? questionId(task) : `${questionId(task)}:${this.#input.runId}`
    yield* this.#tellWhole(messageId, interrupt.message)
    return { outcome: SUCCESS }
  }

  /** An artifact whose first event has only text, and is not its last, is a text message that grows. */
  *#artifactUpdate(
    { artifact: chunk, append, lastChunk }: Extract<StreamResponse, { artifactUpdate: unknown }>['artifactUpdate'],
    task: Task
  ): Generator<AgUiEvent, void, undefined> {
    const { artifactId } = chunk
    const artifact = task.artifacts?.find(each => each.artifactId === artifactId)
    if (!artifact) return
    const begins = isText(artifact) && (append === true || lastChunk !== true)
    if (!begins && !this.#texts.has(artifactId)) return
    yield* this.#tellArtifact(task, artifact)
    const told = lastChunk && this.#told.get(textId(task, artifact))
    if (told) yield* endText(told)
  }

  *#tellArtifact(task: Task, artifact: Artifact): Generator<AgUiEvent, void, undefined> {
    this.#texts.add(artifact.artifactId)
    yield* this.#tell(textId(task, artifact), chunksIn(artifact))
  }

  *#tellWhole(messageId: string, text: string): Generator<AgUiEvent, void, undefined> {
    yield* this.#tell(messageId, text)
    yield* this.close()
  }

  /** Tells as much of a text as the client does not have. A text that was replaced is a new message. */
  *#tell(id: string, text: string): Generator<AgUiEvent, void, undefined> {
    const known = this.#told.get(id) ?? { messageId: id, text: this.#known.get(id) ?? '', isOpen: false }
    this.#told.set(id, known)
    if (!text.startsWith(known.text)) {
      yield* endText(known)
      known.messageId = `${known.messageId}+`
      known.text = ''
    }
    const { messageId } = known
    const delta = text.slice(known.text.length)
    if (delta === '') return
    if (!known.isOpen) yield { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' }
    known.isOpen = true
    known.text = text
    yield { type: 'TEXT_MESSAGE_CONTENT', messageId, delta }
  }
}

/** The end of a run that has failed. */
export interface RunFailure {
  readonly code: string
  readonly message: string
}

const SUCCESS = { type: 'success' } as const

/** The question of a task as an interrupt. `reason`: why it is asked again. */
function interruptOf(task: Task, reason: string | undefined): Interrupt {
  const { state, message } = task.status
  const words = message ? wordsIn(message.parts) : ''
  const schema = answerSchemaOf(message)
  const url = (message?.parts ?? []).flatMap(part => ('url' in part ? [part.url] : []))[0]
  const isAuthorization = state === 'TASK_STATE_AUTH_REQUIRED'
  return {
    id: questionId(task),
    reason: isAuthorization ? 'auth-required' : 'input-required',
    message: reason === undefined ? words : `${reason}\n\n${words}`,
    ...(schema && { responseSchema: schema }),
    metadata: { taskId: task.id, ...(isAuthorization && url !== undefined && { url }) }
  }
}

/** The id of a task's question: the task, and the message that asks. */
export function questionId({ id, status: { message, timestamp = '' } }: Task): string {
  return [id, message?.messageId ?? timestamp].map(encodeURIComponent).join('/')
}

/** The messages of a task: what its user said, and what its agent asked and answered. */
function threadMessages(task: Task): ThreadMessage[] {
  const { history = [], status, artifacts = [] } = task
  // An agent's message before another one of it is progress.
  const spoken = history.filter(({ role }, i) => role === 'ROLE_USER' || history[i + 1]?.role === 'ROLE_USER')
  const last = status.message && isTerminal(status.state) ? [status.message] : []
  const texts = artifacts.filter(artifact => isStreamed(artifact) || (last.length === 0 && isText(artifact)))
  return [
    ...[...spoken, ...last].map(({ messageId, role, parts }): ThreadMessage => ({
      id: messageId,
      role: role === 'ROLE_USER' ? 'user' : 'assistant',
      content: wordsIn(parts)
    })),
    ...texts.map((artifact): ThreadMessage => ({
      id: textId(task, artifact),
      role: 'assistant',
      content: chunksIn(artifact)
    }))
  ]
}

/** The id of the text message that an artifact is. */
function textId({ id }: Task, { artifactId }: Artifact): string {
  return `${id}:${artifactId}`
}

/** The text of an artifact whose parts are chunks. */
function chunksIn({ parts }: Artifact): string {
  return parts.map(part => ('text' in part ? part.text : '')).join('')
}

/** The task as GetTask gives it without history: the members that events keep current. */
function shownTask(task: Task): Task {
  const shown = { ...task }
  delete shown.history
  delete shown.timeline
  const metadata = { ...task.metadata }
  delete metadata[RELIABILITY_EXTENSION]
  if (Object.keys(metadata).length > 0) return { ...shown, metadata }
  delete shown.metadata
  return shown
}

/** The changes of the state from one task to the next. */
function changesOf(before: Task, after: Task): Change[] {
  const { artifacts = [] } = after
  const members = ['id', 'contextId', 'status', 'generation', 'metadata'] as const
  return [
    ...members.flatMap(name => memberChange(`/task/${name}`, before[name], after[name])),
    ...(before.artifacts
      ? artifacts.flatMap((artifact, i) => artifactChanges(i, before.artifacts?.[i], artifact))
      : memberChange('/task/artifacts', undefined, after.artifacts))
  ]
}

function memberChange(path: string, before: unknown, after: unknown): Change[] {
  if (before === after || JSON.stringify(before) === JSON.stringify(after)) return []
  if (after === undefined) return [{ op: 'remove', path }]
  return [{ op: before === undefined ? 'add' : 'replace', path, value: after }]
}

/** A chunk adds its parts. Everything else is the whole artifact. */
function artifactChanges(i: number, before: Artifact | undefined, after: Artifact): Change[] {
  if (before === after) return []
  const path = `/task/artifacts/${i}`
  if (!before) return [{ op: 'add', path, value: after }]
  const { parts: earlier, ...about } = before
  const { parts, ...aboutNow } = after
  const isChunk = parts.length > earlier.length && earlier.every((part, at) => part === parts[at])
  if (!isChunk || JSON.stringify(about) !== JSON.stringify(aboutNow)) return memberChange(path, before, after)
  return parts.slice(earlier.length).map((value, at) => ({
    op: 'add',
    path: `${path}/parts/${earlier.length + at}`,
    value
  }))
}

/** The events for the progress message of a task at work. */
function* progressOf({ id, status: { state, message } }: Task): Generator<AgUiEvent, void, undefined> {
  if (!message || state !== 'TASK_STATE_WORKING') return
  yield {
    type: 'ACTIVITY_SNAPSHOT',
    messageId: `${id}:progress`,
    activityType: 'task-progress',
    content: { taskId: id, text: wordsIn(message.parts) },
    replace: true
  }
}

function* endText(told: ToldText): Generator<AgUiEvent, void, undefined> {
  if (!told.isOpen) return
  told.isOpen = false
  yield { type: 'TEXT_MESSAGE_END', messageId: told.messageId }
}

/** Whether an artifact is nothing but text, and no file. */
function isText({ parts }: Artifact): boolean {
  return parts.every(part => 'text' in part && part.filename === undefined)
}

/** Whether a stored artifact is a text that came in chunks. */
function isStreamed(artifact: Artifact): boolean {
  return artifact.parts.length > 1 && isText(artifact)
}

/** The tokens that models used. */
function usageOf({ metadata }: Task): Pick<RunEnd, 'usage'> {
  const about = metadata?.[MODEL_METADATA]
  const usage = isObject(about) && isObject(about['usage']) ? about['usage'] : {}
  const counts = Object.fromEntries(
    ['inputTokens', 'outputTokens', 'totalTokens'].flatMap(name => {
      const count = usage[name]
      return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? [[name, count]] : []
    })
  )
  return Object.keys(counts).length > 0 ? { usage: [counts] } : {}
}
