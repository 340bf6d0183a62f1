import { type ErrorCode, isA2AError, taskNotFound } from '../../machines/protocol/errors.ts'
import type {
  GetTaskRequest,
  ListTasksRequest,
  ListTasksResponse,
  Message,
  Part,
  SendMessageRequest,
  StreamResponse,
  Task
} from '../../machines/protocol/objects.ts'
import { isInterrupted, isPause, isTerminal } from '../../machines/protocol/states.ts'
import type { Clock } from '../../runtime/ports/clock.ts'
import { onAbort } from '../../runtime/primitives/event-loop.ts'
import { nameQuestion } from '../client/messages.ts'
import { delay } from '../client/retries/request-retry.ts'
import { isUnsupported } from '../client/state/followed-task.ts'
import { reasonOf } from '../mcp/questions.ts'
import { stableId, type RunAction, type RunInput } from './run-input.ts'
import { type AgUiEvent, questionId, type RunEnd, type RunFailure, AgUiTask } from './task-events.ts'

type Items = AsyncGenerator<StreamResponse, void, undefined>

/** The operations of an agent that a run calls. `signal` ends the wait for an answer, never the task. */
export interface AgentCalls {
  /** Sends a message. The first item may be all: the task or the answer. */
  send(request: SendMessageRequest, signal: AbortSignal): Items
  subscribe(taskId: string, signal: AbortSignal): Items
  getTask(request: GetTaskRequest): Promise<Task>
  listTasks(request: ListTasksRequest): Promise<ListTasksResponse>
  cancelTask(taskId: string): Promise<unknown>
}

/** How runs are served. */
export interface RunSettings {
  /** Whether questions are interrupts, or messages. */
  readonly questions: 'interrupt' | 'message'
  readonly clock: Clock
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal
}

/** The newest tasks of a thread that are read, and so many of the messages of each. */
const RECENT_TASKS = 10
const RECENT_MESSAGES = 20
/** How long a run waits for an authorization that its user has given, in milliseconds. Proxies end long runs. */
const AUTHORIZATION_MS = 30_000
/** How often a task is read, in milliseconds, if the agent does not stream. */
const READ_MS = 1000
const AN_ANSWER_IS_NEEDED = 'An answer is needed.'

/** The task, or the answer without one, that a run follows. */
interface Source {
  readonly items: Items
  /** Why the task asks again. */
  readonly reason?: string
  /** The task waits for an authorization that its user has given. */
  readonly isAuthorized?: boolean
  /** The tasks of the thread, for a page without messages. */
  readonly thread?: readonly Task[]
}

/** A run that cannot be: its resume names a question that was never asked. */
const UNKNOWN_INTERRUPT: RunFailure = {
  code: 'UnknownInterrupt',
  message: 'The resume names an interrupt that this thread never had. Start a run without resume.'
}

/**
 * The events of one run. Rejects with an A2AError before the first event if the agent refuses it; a later one is a
 * RUN_ERROR. A run has no state here: what it continues is read from the agent.
 */
export function runEvents(
  input: RunInput,
  agent: AgentCalls,
  settings: RunSettings
): AsyncGenerator<AgUiEvent, void, undefined> {
  return new Run(input, agent, settings).events()
}

class Run {
  readonly #input: RunInput
  readonly #agent: AgentCalls
  readonly #settings: RunSettings
  readonly #events: AgUiTask
  /** Ends the wait for events: the client has gone, or the time is over. */
  readonly #waiting = new AbortController()

  constructor(input: RunInput, agent: AgentCalls, settings: RunSettings) {
    this.#input = input
    this.#agent = agent
    this.#settings = settings
    this.#events = new AgUiTask(input, settings.questions)
  }

  async *events(): AsyncGenerator<AgUiEvent, void, undefined> {
    const stop = onAbort(this.#settings.signal, () => this.#waiting.abort(this.#settings.signal.reason))
    const ids = { threadId: this.#input.threadId, runId: this.#input.runId }
    try {
      const source = await this.#open(this.#input.action)
      yield { type: 'RUN_STARTED', ...ids }
      const end = source === 'unknown' ? UNKNOWN_INTERRUPT : yield* this.#follow(source)
      if (end && 'code' in end) yield* this.#fail(end)
      else if (end) yield { type: 'RUN_FINISHED', ...ids, ...end }
    } finally {
      stop()
    }
  }

  /**
   * Fails the run. Clients keep the interrupts that a failed run has resumed, and refuse every later run: so such a run
   * is finished first, and the next one fails.
   */
  *#fail({ code, message }: RunFailure): Generator<AgUiEvent, void, undefined> {
    const { threadId, runId, action } = this.#input
    if (action.kind === 'resume') {
      yield { type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'success' } }
      yield { type: 'RUN_STARTED', threadId, runId: `${runId}:end` }
    }
    yield { type: 'RUN_ERROR', message, code }
  }

  /** Follows what there is, and gives the end of the run; `undefined` if the client has gone. */
  async *#follow(source: Source | undefined): AsyncGenerator<AgUiEvent, RunEnd | RunFailure | undefined, undefined> {
    if (source) yield* this.#items(source)
    return this.#settings.signal.aborted ? undefined : yield* this.#events.end(source?.reason)
  }

  /** The events of a task until it has ended or asks. */
  async *#items({ items, thread, isAuthorized = false }: Source): AsyncGenerator<AgUiEvent, void, undefined> {
    const { clock, signal } = this.#settings
    const timer = isAuthorized ? clock.setTimeout(() => this.#waiting.abort(), AUTHORIZATION_MS) : undefined
    try {
      if (thread) yield* this.#events.thread(thread)
      for await (const item of items) {
        yield* this.#events.of(item)
        if (this.#isOver(isAuthorized)) return
      }
      // The agent does not stream, or has ended its stream early.
      while (this.#events.task && !this.#waiting.signal.aborted) {
        yield* this.#events.of({ task: await this.#taskOf(this.#events.task.id) })
        if (this.#isOver(isAuthorized)) return
        await delay(READ_MS, clock, this.#waiting.signal)
      }
    } catch (error) {
      // The time for the authorization is over.
      if (signal.aborted || !this.#waiting.signal.aborted) throw error
    } finally {
      clock.clearTimeout(timer)
    }
  }

  #isOver(isAuthorized: boolean): boolean {
    const { task } = this.#events
    if (!task) return true
    const { state } = task.status
    return isPause(state) && !(isAuthorized && state === 'TASK_STATE_AUTH_REQUIRED')
  }

  /** Finds the source that the run follows; `undefined` without one. */
  async #open(action: RunAction): Promise<Source | 'unknown' | undefined> {
    if (action.kind === 'resume') return this.#resume(action)
    const { contextId, isEmpty } = this.#input
    if (action.kind === 'cancel') {
      const task = await this.#taskOf(action.taskId)
      if (task.contextId !== contextId) throw taskNotFound(action.taskId)
      return this.#cancel(task)
    }
    if (action.kind === 'move') return this.#send({ ...messageOf(action), contextId })
    const tasks = await this.#recentTasks()
    if (action.kind === 'message') {
      const { messageId } = action
      const repeated = tasks.find(({ history = [] }) => history.some(message => message.messageId === messageId))
      if (repeated) return this.#rejoin(repeated)
      const asking = tasks.find(({ status }) => isInterrupted(status.state))
      return asking ? this.#answer(asking, messageOf(action)) : this.#send({ ...messageOf(action), contextId })
    }
    const task = tasks.find(({ status }) => !isTerminal(status.state)) ?? tasks[0]
    if (!task) return undefined
    const thread = isEmpty
      ? (await this.#agent.listTasks({ ...this.#recent, includeArtifacts: true })).tasks
      : undefined
    return { ...(await this.#rejoin(task)), ...(thread && { thread }) }
  }

  /** The newest tasks of the thread, the newest first. An agent that lists none has none. */
  async #recentTasks(): Promise<readonly Task[]> {
    try {
      return (await this.#agent.listTasks({ ...this.#recent, historyLength: RECENT_MESSAGES })).tasks
    } catch (error) {
      if (isUnsupported(error) || (isA2AError(error) && error.code === 'Forbidden')) return []
      throw error
    }
  }

  get #recent(): ListTasksRequest {
    return { contextId: this.#input.contextId, pageSize: RECENT_TASKS }
  }

  async #resume({ interruptId, answer }: RunAction & { readonly kind: 'resume' }): Promise<Source | 'unknown'> {
    const [taskId = '', question = ''] = interruptId.split('/').map(decodeText)
    const task = await this.#agent.getTask({ id: taskId }).catch(unlessUnknown)
    if (task?.contextId !== this.#input.contextId || !wasAsked(task, question)) return 'unknown'
    if (!isInterrupted(task.status.state) || questionId(task) !== interruptId) return this.#rejoin(task)
    if (answer === 'cancel') return this.#cancel(task)
    const isAuthorization = task.status.state === 'TASK_STATE_AUTH_REQUIRED'
    if (answer !== 'nothing' && !(isAuthorization && 'text' in answer && answer.text === ''))
      return this.#answer(task, {
        messageId: stableId('answer', interruptId, answer),
        role: 'ROLE_USER',
        parts: [answer]
      })
    return isAuthorization
      ? { ...(await this.#rejoin(task)), isAuthorized: true }
      : { ...(await this.#rejoin(task)), reason: AN_ANSWER_IS_NEEDED }
  }

  /** Sends an answer to the task that asks. If the task refuses it, it asks again; if it has moved on, it is followed. */
  async #answer(task: Task, message: Message): Promise<Source> {
    try {
      return await this.#send(nameQuestion({ ...message, taskId: task.id }, task.status.message))
    } catch (error) {
      if (!isA2AError(error)) throw error
      if (error.code === 'InvalidParams')
        return { ...(await this.#rejoin(task)), reason: `Not accepted: ${reasonOf(error) || error.message}` }
      // The words of a user who waits for an authorization say that it was given.
      const isLate = this.#input.action.kind === 'resume' || task.status.state === 'TASK_STATE_AUTH_REQUIRED'
      if (isLate && error.code === 'UnsupportedOperation') return { ...(await this.#rejoin(task)), isAuthorized: true }
      throw error
    }
  }

  async #cancel({ id }: Task): Promise<Source> {
    await this.#agent.cancelTask(id).catch(unless(['TaskNotCancelable']))
    return { items: this.#taskAlone(id) }
  }

  #send(message: Message): Promise<Source> {
    const { metadata } = this.#input
    const request: SendMessageRequest = { message, ...(metadata && { metadata }), configuration: { historyLength: 0 } }
    return started(this.#agent.send(request, this.#waiting.signal))
  }

  /** Follows a task that exists. One that has ended has no events. */
  async #rejoin({ id }: Task): Promise<Source> {
    try {
      return await started(this.#agent.subscribe(id, this.#waiting.signal))
    } catch (error) {
      if (!isUnsupported(error)) throw error
    }
    return { items: this.#taskAlone(id) }
  }

  async *#taskAlone(taskId: string): Items {
    yield { task: await this.#taskOf(taskId) }
  }

  #taskOf(id: string): Promise<Task> {
    return this.#agent.getTask({ id, historyLength: 0 })
  }
}

/** Items whose first one has arrived. Rejects if the agent refuses the call. */
async function started(items: Items): Promise<Source> {
  const first = await items.next()
  async function* all(): Items {
    if (first.done) return
    try {
      yield first.value
      yield* items
    } finally {
      await items.return()
    }
  }
  return { items: all() }
}

/** Whether a task has asked a question, as far as its history says. */
function wasAsked({ history = [], status }: Task, question: string): boolean {
  const messages = status.message ? [...history, status.message] : history
  return history.length === 0 || messages.some(({ messageId }) => messageId === question)
}

function decodeText(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}

const unlessUnknown = unless(['TaskNotFound', 'InvalidParams'])

/** Passes over errors with these codes. */
function unless(codes: readonly ErrorCode[]): (error: unknown) => undefined {
  return error => {
    if (isA2AError(error) && codes.includes(error.code)) return undefined
    throw error
  }
}

function messageOf({ messageId, parts }: { readonly messageId: string; readonly parts: Part[] }): Message {
  return { messageId, role: 'ROLE_USER', parts }
}
