import { A2AError } from '../../machines/protocol/errors.ts'
import type { Artifact, Message, StreamResponse, Task, TaskStatus } from '../../machines/protocol/objects.ts'
import { isTerminal, type TaskState } from '../../machines/protocol/states.ts'
import type { Words } from '../../runtime/index.ts'
import { taskReferenceOf } from '../client/requests.ts'
import { type News, newsIn, type RecordKeeper, type RemoteAsking, type RemoteEvent } from './remote-record.ts'

/** Receives the events of a delegated task. */
export interface RemoteTaskListener {
  /** Receives an event, in the turn that records it. `question` is the number of the last question. */
  handleEvent(event: RemoteEvent, question: number): void
  /** Receives an open question again, after a restart of the process or of the work. */
  repeatQuestion?(event: RemoteAsking, question: number): void
  /** There are no more events. */
  over(): void
  /** Whether the task will be resumed although its actor was stopped. */
  goesOn(): boolean
}

/** The maximum number of events of one task. */
const MOST_EVENTS = 10_000

/** A task of another agent: new events are forwarded and recorded. */
export class RemoteTask {
  readonly record: RecordKeeper
  readonly #listener: RemoteTaskListener
  readonly #from: string
  readonly #identified: (id: string) => void
  #id: string | undefined
  #isSilent = false
  /** The number of forwarded events. */
  passedOn = 0
  /** The agent's answer, if it opened no task. */
  reply: Message | undefined

  /** `from` is the id of the actor; `identified` is called with the task's id. */
  constructor(
    record: RecordKeeper,
    { listener, from }: { readonly listener: RemoteTaskListener; readonly from: string },
    identified: (id: string) => void
  ) {
    this.record = record
    this.#listener = listener
    this.#from = from
    this.#identified = identified
    const { taskId } = record.now
    if (taskId !== undefined) this.identify(taskId)
  }

  get id(): string | undefined {
    return this.#id
  }

  get hasEnded(): boolean {
    const { state } = this.record.now
    return this.reply !== undefined || (state !== undefined && isTerminal(state))
  }

  /** Records the id of the task. */
  identify(id: string): void {
    if (this.#id !== undefined) return
    this.#id = id
    this.#identified(id)
    if (!this.#isSilent && this.record.now.taskId === undefined) this.record.change({ taskId: id })
  }

  /** Stops forwarding and recording. */
  silence(): void {
    this.#isSilent = true
  }

  /** Takes an event of the agent. Throws InvalidAgentResponse for invalid events, and above the maximum number. */
  take(event: StreamResponse): void {
    if ('message' in event) {
      this.reply = event.message
      return
    }
    const { taskId } = taskReferenceOf(event)
    if (taskId === undefined || (this.#id ?? taskId) !== taskId)
      throw new A2AError('InvalidAgentResponse', `It sent an event of task ${taskId} in place of ${this.#id}.`)
    this.identify(taskId)
    if (this.#isSilent) return
    for (const one of newsIn(event, this.record)) this.#pass(one, taskId)
  }

  /** Repeats an open question after a restart of the process or of the work. */
  takeUp(): void {
    const { question } = this.record.now
    if (question && !question.isAnswered) this.#listener.repeatQuestion?.(question.event, question.number)
  }

  /** Repeats the question after the agent refused the answer. Returns `false` if none is open. */
  askAgain(refusal: string): boolean {
    const { question } = this.record.now
    if (question) this.#openQuestion({ ...question.event, refusal })
    return question !== undefined
  }

  /** Records that the open question has an answer. */
  answered(): void {
    const { question } = this.record.now
    if (question) this.record.change({ question: { ...question, isAnswered: true } })
  }

  #pass(news: News, taskId: string): void {
    if ('status' in news) return this.#passStatus(news.status, taskId)
    this.#notify({ type: 'remote.artifact', from: this.#from, taskId, ...news })
  }

  #passStatus({ state, message }: TaskStatus, taskId: string): void {
    const event = { from: this.#from, taskId, message }
    const type = QUESTIONS[state]
    this.record.change({ state, question: undefined })
    if (type) this.#openQuestion({ ...event, type, refusal: undefined })
    else if (state === 'TASK_STATE_SUBMITTED' || state === 'TASK_STATE_WORKING')
      this.#notify({ ...event, type: 'remote.status', state })
  }

  #openQuestion(event: RemoteAsking): void {
    const number = this.record.now.questions + 1
    this.record.change({ questions: number, question: { number, event, isAnswered: false } })
    this.#notify(event)
  }

  #notify(event: RemoteEvent): void {
    this.passedOn += 1
    if (this.passedOn > MOST_EVENTS)
      throw new A2AError('InvalidAgentResponse', `It told more than ${MOST_EVENTS} events of one task.`)
    this.#listener.handleEvent(event, this.record.now.questions)
  }
}

const QUESTIONS: Partial<Record<TaskState, RemoteAsking['type']>> = {
  TASK_STATE_INPUT_REQUIRED: 'remote.input-required',
  TASK_STATE_AUTH_REQUIRED: 'remote.auth-required'
}

/** A request to another agent. */
export interface RemoteInput {
  readonly message: Words
  /** The context with that agent (`contextId` of an earlier result). Default: a new one for each task. */
  readonly contextId?: string
  /** Tasks of that agent that the message refers to. */
  readonly referenceTaskIds?: readonly string[]
  /**
   * The time limit of the task, in milliseconds: then it is canceled, and the actor fails with DeadlineExceeded.
   * Default: none.
   */
  readonly deadlineMs?: number
}

/** The event for the actor: `sendTo('hotel', ({ event }) => ({ type: 'answer', message: event.message }))`. */
export interface RemoteAnswer {
  readonly type: 'answer'
  readonly message: Words
}

/** The result of a delegated task. */
export interface RemoteResult {
  /** The artifacts of the task; empty if the agent answered with a message. */
  readonly artifacts: Artifact[]
  /** The agent's last message, if any. */
  readonly message?: Message
  /** The context with the agent, for a follow-up message. */
  readonly contextId?: string
  /** The completed task; absent if the agent answered with a message. */
  readonly task?: Task
}
