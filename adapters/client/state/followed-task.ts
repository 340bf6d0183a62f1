import { isA2AError } from '../../../machines/protocol/errors.ts'
import type { Message, SendMessageResponse, StreamResponse, Task } from '../../../machines/protocol/objects.ts'
import { isInterrupted, isTerminal } from '../../../machines/protocol/states.ts'
import { type Clock, systemClock } from '../../../runtime/ports/clock.ts'
import type { AgentClient } from '../agent-client.ts'
import { nameQuestion } from '../messages.ts'
import { delay } from '../retries/request-retry.ts'
import { foldTask } from './fold-task.ts'
import { Changing, type Content, type OpenQuestion, toParts, questionOf, type Watched } from './questions.ts'

/** The current state of a task. */
export interface TaskView {
  /** `undefined` until it has arrived. */
  readonly task: Task | undefined
  readonly question: OpenQuestion | undefined
  /** The error that ended watching; `undefined` if there was none. */
  readonly error: unknown
}

/** A task that is watched until `close`. */
export interface WatchedTask extends Watched<TaskView> {
  /** Starts watching. Returns a function that stops it; both may be called again. */
  readonly open: () => () => void
  /**
   * Answers its question. Rejects with the agent's error, such as InvalidParams for an answer that does not match the
   * schema.
   */
  readonly answer: (content: Content) => Promise<void>
  /** Cancels it. Rejects with TaskNotCancelable if it has ended. */
  readonly cancel: () => Promise<void>
}

type TaskAgent = Followable & Pick<AgentClient, 'sendMessage' | 'cancelTask'>

/**
 * Watches a task until it ends: by its stream, or by polls if the agent does not stream. Nothing is sent before `open`.
 */
export function watchTask(agent: TaskAgent, taskId: string, options: WatchOptions = {}): WatchedTask {
  const view = new Changing<TaskView>({ task: undefined, question: undefined, error: undefined })
  const arrived = (task: Task) => view.change({ task, question: questionOf(task), error: undefined })
  const followed = () => followedTask(agent, taskId, { ...options, known: view.snapshot().task })
  /** Passes on the task that a call answers with. */
  const arriveBy = async (call: () => Promise<SendMessageResponse>) => {
    const task = followed()
    const release = task.hold()
    try {
      task.arrive(await call())
    } finally {
      release()
    }
  }
  return {
    snapshot: view.snapshot,
    subscribe: view.subscribe,
    open: () => {
      const task = followed()
      if (task.task) arrived(task.task)
      return task.follow({ arrived, failed: error => view.change({ error }) })
    },
    answer: content =>
      arriveBy(() => {
        const message: Message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', taskId, parts: toParts(content) }
        return agent.sendMessage({
          message: nameQuestion(message, view.snapshot().question?.message),
          configuration: { returnImmediately: true }
        })
      }),
    cancel: () => arriveBy(async () => ({ task: await agent.cancelTask({ id: taskId }) }))
  }
}

/** The parts of a client that follow a task. */
export type Followable = Pick<AgentClient, 'getTask' | 'subscribeToTask'> & Partial<Pick<AgentClient, 'binding'>>

/** The options of `conversation` and `watchTask`. */
export interface WatchOptions {
  /** The clock of polls. Default: the system's. */
  readonly clock?: Clock
}

/** Receives a task after each change, and the error that ended following it. */
interface TaskListener {
  readonly arrived: (task: Task) => void
  readonly failed: (error: unknown) => void
}

/** The polling interval: it doubles from the first to the last while the status is unchanged. */
const FIRST_POLL_MS = 1000
const LAST_POLL_MS = 15_000

/**
 * How many tasks of an agent have a stream at a time; the others are polled. Browsers open 6 connections to a host over
 * HTTP/1.1, in all tabs.
 */
const MOST_STREAMS = { http: 2, websocket: 16 }

/** The followed tasks of one agent, by id. */
interface AgentTasks {
  readonly tasks: Map<string, FollowedTask>
  streams: number
}

/**
 * How a subscription ended. `refused`: the task has ended, or the agent does not stream. `answered`: another client has
 * answered the task's question. Only the whole task has that client's message, so it has to be read.
 */
type StreamEnd = 'ended' | 'refused' | 'answered'

const agents = new WeakMap<Followable, AgentTasks>()

/**
 * The task of an agent with this id: the same one for all followers at the same time. `known` is the task of the
 * caller.
 */
export function followedTask(
  agent: Followable,
  id: string,
  { clock = systemClock, known }: WatchOptions & { readonly known?: Task | undefined } = {}
): FollowedTask {
  const all = agents.get(agent) ?? { tasks: new Map<string, FollowedTask>(), streams: 0 }
  agents.set(agent, all)
  return all.tasks.get(id) ?? new FollowedTask(agent, id, { all, clock, known })
}

/**
 * The current state of a task, for all its viewers. Its events come from one stream at a time. A message's own stream
 * holds the task. Otherwise it is followed by a subscription or by polls, while it has a listener and has not ended.
 */
export class FollowedTask {
  readonly #agent: Followable
  readonly #id: string
  readonly #all: AgentTasks
  readonly #clock: Clock
  readonly #listeners = new Set<TaskListener>()
  #holds = 0
  #task: Task | undefined
  #following: AbortController | undefined

  constructor(
    agent: Followable,
    id: string,
    { all, clock, known }: { readonly all: AgentTasks; readonly clock: Clock; readonly known: Task | undefined }
  ) {
    this.#agent = agent
    this.#id = id
    this.#all = all
    this.#clock = clock
    this.#task = known
  }

  /** The task; `undefined` until it has arrived. */
  get task(): Task | undefined {
    return this.#task
  }

  /**
   * Follows the task until the returned function is called. After an error it is followed again with the next listener
   * or message.
   */
  follow({ arrived, failed }: TaskListener): () => void {
    const own = { arrived, failed }
    this.#listeners.add(own)
    this.#settle()
    return () => {
      if (this.#listeners.delete(own)) this.#settle()
    }
  }

  /**
   * Ends the stream until the returned function is called, since the answer to a message contains the events of the
   * task.
   */
  hold(): () => void {
    this.#holds += 1
    this.#settle()
    return () => {
      this.#holds -= 1
      this.#settle()
    }
  }

  /** Folds an event into the task, and notifies the listeners. Returns the task. */
  arrive(event: StreamResponse): Task | undefined {
    const task = foldTask(this.#task, event)
    if (task && task !== this.#task) {
      this.#task = task
      for (const { arrived } of this.#listeners) arrived(task)
    }
    return task
  }

  get #hasEnded(): boolean {
    return this.#task !== undefined && isTerminal(this.#task.status.state)
  }

  /** Starts or stops following after a change. A task without listeners and holders is removed. */
  #settle(): void {
    const isUsed = this.#listeners.size > 0 || this.#holds > 0
    if (isUsed) this.#all.tasks.set(this.#id, this)
    else this.#all.tasks.delete(this.#id)
    if (isUsed && this.#holds === 0 && !this.#hasEnded) {
      this.#following ??= this.#start()
    } else {
      this.#following?.abort()
      this.#following = undefined
    }
  }

  #start(): AbortController {
    const stopping = new AbortController()
    const { signal } = stopping
    this.#follow(signal).catch((error: unknown) => {
      if (signal.aborted) return
      this.#following = undefined
      for (const { failed } of this.#listeners) failed(error)
    })
    return stopping
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const most =
      this.#agent.binding === undefined || this.#agent.binding === 'WEBSOCKET'
        ? MOST_STREAMS.websocket
        : MOST_STREAMS.http
    let isStreamed = true
    for (let waitMs = FIRST_POLL_MS; !this.#hasEnded; waitMs = Math.min(2 * waitMs, LAST_POLL_MS)) {
      const before = JSON.stringify(this.#task?.status)
      const end: StreamEnd | undefined = isStreamed && this.#all.streams < most ? await this.#stream(signal) : undefined
      if (end !== 'ended') {
        const task = await this.#agent.getTask({ id: this.#id }, { signal })
        signal.throwIfAborted()
        this.arrive({ task })
        isStreamed &&= end !== 'refused'
      }
      if (this.#hasEnded || end === 'answered') continue
      if (JSON.stringify(this.#task?.status) !== before) waitMs = FIRST_POLL_MS
      await delay(waitMs, this.#clock, signal)
      signal.throwIfAborted()
    }
  }

  async #stream(signal: AbortSignal): Promise<StreamEnd> {
    this.#all.streams += 1
    return this.#read(signal).finally(() => (this.#all.streams -= 1))
  }

  async #read(signal: AbortSignal): Promise<StreamEnd> {
    try {
      for await (const event of this.#agent.subscribeToTask({ id: this.#id }, { signal })) {
        signal.throwIfAborted()
        if (!('task' in event) && isWaiting(this.#task) && !isWaiting(foldTask(this.#task, event))) return 'answered'
        this.arrive(event)
      }
      return 'ended'
    } catch (error) {
      signal.throwIfAborted()
      if (!isUnsupported(error)) throw error
    }
    return 'refused'
  }
}

/** Whether an agent does not support an operation, or not for this task. */
export function isUnsupported(error: unknown): boolean {
  return isA2AError(error) && (error.code === 'UnsupportedOperation' || error.code === 'MethodNotFound')
}

function isWaiting(task: Task | undefined): boolean {
  return task !== undefined && isInterrupted(task.status.state)
}
