import { offerIn, type Offer } from '../../../machines/protocol/negotiation.ts'
import type { ListTasksRequest, Message, StreamResponse, Task } from '../../../machines/protocol/objects.ts'
import { isInterrupted, isTerminal } from '../../../machines/protocol/states.ts'
import { systemClock } from '../../../runtime/ports/clock.ts'
import type { AgentClient } from '../agent-client.ts'
import { artifactsByName, type ArtifactVersion } from '../artifact-versions.ts'
import { nameQuestion } from '../messages.ts'
import { taskReferenceOf } from '../requests.ts'
import { delay } from '../retries/request-retry.ts'
import { followedTask, isUnsupported, type Followable, type FollowedTask, type WatchOptions } from './followed-task.ts'
import { Changing, type Content, type OpenQuestion, toParts, questionOf, type Watched } from './questions.ts'

/** The current state of a conversation. */
export interface ConversationView {
  /** `undefined` until the agent has answered the first message of a new conversation. */
  readonly contextId: string | undefined
  /** The messages of both sides, oldest first. A message is there as soon as it is sent. */
  readonly messages: readonly Message[]
  /** The current tasks, in the order of their arrival. */
  readonly tasks: readonly Task[]
  /** Whether the context has older tasks, which `more` reads. */
  readonly hasMore: boolean
  /** All versions of each artifact by name, the latest last. */
  readonly artifacts: ReadonlyMap<string, readonly ArtifactVersion[]>
  /** The question of the latest task that waits; `undefined` if none waits. */
  readonly question: OpenQuestion | undefined
  /** The offer in the agent's last message, unless a message was sent after it. */
  readonly offer: Offer | undefined
  /** Whether a message was sent whose answer is not complete, or the conversation is being read. */
  readonly isBusy: boolean
  /** The error of the last message, or of reading the conversation; `undefined` if there was none. */
  readonly error: unknown
}

/** The client's side of a conversation. */
export interface Conversation extends Watched<ConversationView> {
  /**
   * Reads the newest 100 tasks of the context, follows those that have not ended, and looks for tasks of other clients
   * every 10 seconds. Returns a function that stops all streams; tasks continue. Both may be called again, and `send`
   * may be called before and after.
   */
  readonly open: () => () => void
  /** Reads up to 100 tasks that are older, if there are any. It does not reject: `error` of the view has the error. */
  readonly more: () => Promise<void>
  /**
   * Sends a message: an answer if a task waits, else a new message of the context. `taskId: null` is never an answer.
   * Resolves when its answer is complete. It does not reject: `error` of the view has the error.
   */
  readonly send: (content: Content, options?: SendOptions) => Promise<void>
}

/** The options of a message. */
export interface SendOptions {
  /** The task that it addresses. Default: the task of `question`; `null` addresses none. */
  readonly taskId?: string | null
  /** Tasks that it refers to, as for a version of an artifact (`artifactVersions`). */
  readonly referenceTaskIds?: readonly string[]
}

type ConversationAgent = Followable & Pick<AgentClient, 'listTasks' | 'sendStreamingMessage'>

const NOTHING: ConversationView = {
  contextId: undefined,
  messages: [],
  tasks: [],
  hasMore: false,
  artifacts: new Map(),
  question: undefined,
  offer: undefined,
  isBusy: false,
  error: undefined
}

/** How many tasks are read at a time, which is the most that A2A allows (§3.1.4). */
const PAGE_SIZE = 100

/** How often an open conversation looks for tasks that other clients began or continued. */
const LOOK_MS = 10_000

/**
 * A conversation with an agent: a context that exists, or a new one without `contextId`. Nothing is sent before `open`
 * or `send`.
 */
export function conversation(agent: ConversationAgent, contextId?: string, options: WatchOptions = {}): Conversation {
  return new ContextConversation(agent, contextId, options)
}

class ContextConversation implements Conversation {
  readonly #agent: ConversationAgent
  readonly #options: WatchOptions
  readonly #view: Changing<ConversationView>
  readonly #messageIds = new Set<string>()
  /** How to stop following each task. It is empty while the conversation is closed. */
  readonly #following = new Map<string, () => void>()
  #stopping: AbortController | undefined
  #busy = 0
  /** The latest status that the agent has listed. */
  #since: string | undefined
  /** The page with the tasks before the oldest; empty if there are none. */
  #olderPage = ''

  constructor(agent: ConversationAgent, contextId: string | undefined, options: WatchOptions) {
    this.#agent = agent
    this.#options = options
    this.#view = new Changing<ConversationView>({ ...NOTHING, contextId })
  }

  // Properties, so that they can be passed on without their object.
  readonly snapshot = (): ConversationView => this.#view.snapshot()

  readonly subscribe = (listener: () => void): (() => void) => this.#view.subscribe(listener)

  readonly open = (): (() => void) => {
    this.#close()
    const own = (this.#stopping = new AbortController())
    for (const task of this.snapshot().tasks) this.#follow(task)
    this.#watch(own.signal).catch((error: unknown) => {
      // Agents of A2A 0.3 list no tasks. Nothing is missing then, if the context is new.
      if (!own.signal.aborted && !isUnsupported(error)) this.#view.change({ error })
    })
    return () => {
      if (this.#stopping === own) this.#close()
    }
  }

  readonly more = async (): Promise<void> => {
    const { contextId } = this.snapshot()
    const pageToken = this.#olderPage
    if (contextId === undefined || pageToken === '') return
    this.#olderPage = ''
    const isRead = await this.#run(async signal => {
      const { tasks, nextPageToken } = await this.#agent.listTasks({ ...listOf(contextId), pageToken }, { signal })
      this.#olderPage = nextPageToken
      this.#stand(tasks.toReversed(), { isOlder: true })
      this.#view.change({ hasMore: this.#olderPage !== '' })
    })
    if (!isRead) this.#olderPage = pageToken
  }

  readonly send = async (
    content: Content,
    { taskId = this.snapshot().question?.taskId ?? null, referenceTaskIds }: SendOptions = {}
  ): Promise<void> => {
    const { contextId, question } = this.snapshot()
    const message: Message = {
      messageId: crypto.randomUUID(),
      role: 'ROLE_USER',
      parts: toParts(content),
      ...(contextId !== undefined && { contextId }),
      ...(taskId !== null && { taskId }),
      ...(referenceTaskIds && { referenceTaskIds: [...referenceTaskIds] })
    }
    this.#addMessages([message])
    this.#view.change({ offer: undefined })
    await this.#run(signal =>
      this.#answer(question?.taskId === taskId ? nameQuestion(message, question.message) : message, signal)
    )
  }

  #close(): void {
    this.#stopping?.abort()
    this.#stopping = undefined
    for (const leave of this.#following.values()) leave()
    this.#following.clear()
  }

  /** Reads the context, and looks for changes until the signal aborts. Throws the error of a look. */
  async #watch(signal: AbortSignal): Promise<void> {
    const { contextId } = this.snapshot()
    if (contextId !== undefined && !(await this.#run(() => this.#read(contextId, signal)))) return
    for (;;) {
      await delay(LOOK_MS, this.#options.clock ?? systemClock, signal)
      signal.throwIfAborted()
      const { contextId } = this.snapshot()
      if (contextId !== undefined) await this.#read(contextId, signal)
    }
  }

  /** Reads the newest tasks; later, those whose status has changed since. */
  async #read(contextId: string, signal: AbortSignal): Promise<void> {
    const since = this.#since
    const had = new Set([''])
    for (let pageToken = ''; ;) {
      const place = { ...(since !== undefined && { statusTimestampAfter: since }), ...(pageToken && { pageToken }) }
      const { tasks, nextPageToken } = await this.#agent.listTasks({ ...listOf(contextId), ...place }, { signal })
      signal.throwIfAborted()
      const standing = new Map(this.snapshot().tasks.map(({ id, status }) => [id, JSON.stringify(status)]))
      // A followed task is newer than its entry in a list.
      this.#stand(
        tasks
          .filter(({ id, status }) => !this.#following.has(id) && standing.get(id) !== JSON.stringify(status))
          .toReversed()
      )
      // The latest status is the first of the list (§3.1.4).
      if (pageToken === '') this.#since = tasks[0]?.status.timestamp ?? this.#since
      pageToken = nextPageToken
      if (since === undefined) {
        this.#olderPage = nextPageToken
        return this.#view.change({ hasMore: nextPageToken !== '' })
      }
      // An agent may give empty pages or the same page for ever.
      if (tasks.length === 0 || had.has(pageToken)) return
      had.add(pageToken)
    }
  }

  /** Runs a call; its error goes into the view, unless the conversation was closed. Returns whether it succeeded. */
  async #run(call: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
    const { signal } = this.#stopping ?? new AbortController()
    this.#busy += 1
    this.#view.change({ isBusy: true, error: undefined })
    const failure = await call(signal).then(
      () => undefined,
      (error: unknown) => ({ error })
    )
    this.#busy -= 1
    this.#view.change({ isBusy: this.#busy > 0, ...(!signal.aborted && failure) })
    return failure === undefined
  }

  /** Sends a message. The events of its answer replace the stream of the task. */
  async #answer(message: Message, signal: AbortSignal): Promise<void> {
    let held = message.taskId === undefined ? undefined : this.#hold(message.taskId)
    const arrive = (event: StreamResponse) => {
      if ('message' in event) return this.#reply(event.message)
      held ??= this.#hold(taskReferenceOf(event).taskId)
      const task = held.task.arrive(event)
      if (task) this.#stand([task])
    }
    try {
      for await (const event of this.#agent.sendStreamingMessage({ message }, { signal })) arrive(event)
    } finally {
      held?.release()
    }
  }

  #hold(taskId: string): { readonly task: FollowedTask; readonly release: () => void } {
    const task = this.#followed(taskId)
    return { task, release: task.hold() }
  }

  #followed(id: string): FollowedTask {
    return followedTask(this.#agent, id, {
      ...this.#options,
      known: this.snapshot().tasks.find(task => task.id === id)
    })
  }

  #follow({ id, status }: Task): void {
    if (isTerminal(status.state)) {
      this.#following.get(id)?.()
      this.#following.delete(id)
    } else if (!this.#following.has(id)) {
      const followed = this.#followed(id)
      this.#following.set(
        id,
        followed.follow({ arrived: task => this.#stand([task]), failed: error => this.#view.change({ error }) })
      )
      if (followed.task) this.#stand([followed.task])
    }
  }

  #reply(message: Message): void {
    this.#addMessages([message])
    this.#view.change({ offer: offerIn(message), contextId: message.contextId ?? this.snapshot().contextId })
  }

  /** Adds messages that are not known. */
  #addMessages(given: readonly Message[], isOlder = false): void {
    const fresh = given.filter(({ messageId }) => !this.#messageIds.has(messageId) && this.#messageIds.add(messageId))
    const { messages } = this.snapshot()
    if (fresh.length > 0) this.#view.change({ messages: isOlder ? [...fresh, ...messages] : [...messages, ...fresh] })
  }

  /** Shows tasks, and follows those that have not ended, unless they are older than all others. */
  #stand(tasks: readonly Task[], { isOlder = false } = {}): void {
    const before = this.snapshot()
    const changed = changedTasks(before.tasks, tasks, isOlder)
    if (!changed) return
    const isOfSameArtifacts = changed.every(({ artifacts }, i) => artifacts === before.tasks[i]?.artifacts)
    const artifacts = isOfSameArtifacts ? before.artifacts : artifactsByName(changed)
    const question = changed.findLast(({ status }) => isInterrupted(status.state))
    this.#view.change({
      tasks: changed,
      artifacts,
      question: question && questionOf(question),
      contextId: tasks.at(-1)?.contextId ?? before.contextId
    })
    this.#addMessages(tasks.flatMap(messagesOf), isOlder)
    if (this.#stopping && !isOlder) for (const task of tasks) this.#follow(task)
  }
}

/** The messages of both sides, oldest first: those of the timeline, which a task of 1.1 has, or of the history. */
function messagesOf({ history = [], timeline, status }: Task): Message[] {
  if (timeline) return timeline.flatMap(({ message, status }) => message ?? status?.message ?? [])
  return status.message ? [...history, status.message] : history
}

function listOf(contextId: string): ListTasksRequest {
  return { contextId, includeArtifacts: true, pageSize: PAGE_SIZE }
}

/**
 * The list with the tasks that arrived: in their places, else at the end, or at the start if they are older.
 * `undefined` if it is the same.
 */
function changedTasks(
  before: readonly Task[],
  arrived: readonly Task[],
  isOlder: boolean
): readonly Task[] | undefined {
  const changes = new Map(arrived.map(task => [task.id, task]))
  let isChanged = false
  const kept = before.map(task => {
    const changed = changes.get(task.id) ?? task
    changes.delete(task.id)
    isChanged ||= changed !== task
    return changed
  })
  if (!isChanged && changes.size === 0) return undefined
  return isOlder ? [...changes.values(), ...kept] : [...kept, ...changes.values()]
}
