import type { ContextFact } from '../../machines/context.machine.ts'
import type { A2AError } from '../../machines/protocol/errors.ts'
import type { Message } from '../../machines/protocol/objects.ts'
import { NEGOTIATION_EXTENSION } from '../../machines/protocol/uris.ts'
import type { ClientMessage } from '../../machines/task-events.ts'
import { agentMessage } from '../authoring/words.ts'
import { type OpeningDetails, receivedBytes, type WorkInput } from '../authoring/work-arguments.ts'
import type { CommitPipeline, Turn, TurnCallbacks } from '../commits/commit-pipeline.ts'
import { type EmittedFact, factAtEventLimit, type TaskLedger } from '../commits/task-ledger.ts'
import { appendItem, NONE, without } from '../primitives/collections.ts'
import { jsonBytes } from '../primitives/json.ts'
import type { SendRow } from '../store/rows.ts'
import type { ContextKey, JournalRow, TaskEvent } from '../store/store.ts'
import { isLast } from '../store/task-record.ts'
import { firstWorkInput, detailsFromRequest, storeOpened } from '../work/work-input.ts'
import type { ContextServices } from './dependencies.ts'
import { noAnswer, requestRefused, tooManyBytes, tooManyEvents } from './errors.ts'
import type { EventOptions } from './external-events.ts'

/** Part of `limits.taskBytes` at which a task is logged as nearly full. */
const NEARLY_FULL = 0.8

type FactOf<Type extends ContextFact['type']> = Extract<ContextFact, { type: Type }>

/** A task that a fact has opened. */
export interface OpenedTask {
  readonly taskId: string
  readonly details: OpeningDetails
  /** The input of its work, if that is known without a read. */
  readonly input: WorkInput | undefined
}

/**
 * Turns what the charts of one context emit into rows of the open turn, within the limits of its tasks. A method that
 * gives an error has found its task too large: the caller fails the task with it.
 */
export class Facts {
  readonly #key: ContextKey
  readonly #services: ContextServices
  readonly #pipeline: CommitPipeline
  readonly #tasks: TaskLedger
  readonly #calls: PendingCalls
  /** Whether the context may have had a task. */
  #hasTasks: boolean

  constructor(
    key: ContextKey,
    services: ContextServices,
    pipeline: CommitPipeline,
    tasks: TaskLedger,
    calls: PendingCalls
  ) {
    this.#key = key
    this.#services = services
    this.#pipeline = pipeline
    this.#tasks = tasks
    this.#calls = calls
    this.#hasTasks = pipeline.commits > 0
  }

  /** Opens a task by the message of a request, whose call gets it after the commit. */
  openTask({ request, terms }: FactOf<'task.opened'>): OpenedTask {
    const { taskId, callId } = request
    const { turn } = this.#pipeline
    const { contextId } = this.#key
    const message = Object.assign({}, request.message, { taskId, contextId })
    const details = detailsFromRequest(request)
    const input =
      this.#hasTasks || this.#services.agent.input
        ? undefined
        : firstWorkInput({ taskId, contextId, message, ...details }, terms)
    this.#hasTasks = true
    this.#tasks.open(taskId, { metadata: terms && { [NEGOTIATION_EXTENSION]: { terms } } })
    turn.markChanged(taskId)
    this.addMessage(taskId, message, request.details)
    storeOpened(taskId, details, turn)
    this.#calls.settle(callId, turn, { taskId })
    return { taskId, details, input }
  }

  /** Adds a request and the agent's answer, without a task. */
  addReply({ request, reply: content }: FactOf<'request.answered'>): void {
    const { turn } = this.#pipeline
    const reply = agentMessage(content, this.#key, this.#services.ids)
    turn.addEvent({ message: { ...request.message, contextId: this.#key.contextId } })
    turn.addEvent({ message: reply })
    this.#calls.settle(request.callId, turn, { reply })
  }

  /** Answers a refused request with an error. */
  refuse(fact: FactOf<'request.refused'>): void {
    this.#calls.settle(fact.request.callId, this.#pipeline.turn, { error: requestRefused(fact) })
  }

  /* c8 ignore next 4 -- a negotiation ends with an outcome, whatever its author's code does */
  /** Answers the request of a negotiation that has crashed. */
  refuseCrashed(callId: string): void {
    this.#calls.settle(callId, this.#pipeline.turn, { error: noAnswer() })
  }

  /** Adds an event that a task emits. At a limit it adds only the task's end. */
  addTaskFact(taskId: string, fact: EmittedFact): A2AError | undefined {
    const { eventsPerTask, taskBytes } = this.#services.limits
    const newest = this.#tasks.newestEventOf(taskId)
    const isFirst = newest === 0
    const bytes = jsonBytes(fact)
    if (!isFirst && !this.#tasks.fits(taskId, bytes, taskBytes)) {
      const error = this.#tooManyBytes(taskId, bytes)
      this.#addEvent(taskId, factAtEventLimit(fact, error.message, false))
      return this.#fill(taskId, error)
    }
    this.#addBytes(taskId, bytes)
    if (newest >= eventsPerTask) {
      this.#addEvent(taskId, factAtEventLimit(fact, tooManyEvents(eventsPerTask).message, true))
      return undefined
    }
    const event = this.#addEvent(taskId, fact)
    // Messages count too, so an event may be the first above the limit.
    return event && event.generation >= eventsPerTask && !isLast(event) ? tooManyEvents(eventsPerTask) : undefined
  }

  #addEvent(taskId: string, fact: EmittedFact | undefined): TaskEvent | undefined {
    const event = fact && this.#tasks.stamp(taskId, fact)
    if (event) this.#pipeline.turn.addEvent(event)
    return event
  }

  /**
   * Adds a client's message. Gives false if it exceeds the task's bytes; the message that opens a task always fits.
   */
  addMessage(taskId: string, message: Message, request?: ClientMessage['request']): boolean {
    const bytes = receivedBytes(request ? { message, request } : { message })
    const isFirst = this.#tasks.generationOf(taskId) === 0
    if (!isFirst && !this.#tasks.fits(taskId, bytes, this.#services.limits.taskBytes)) return false
    this.#addBytes(taskId, bytes)
    this.#tasks.countMessage(taskId, bytes)
    this.#pipeline.turn.addEvent({
      message,
      taskId,
      generation: this.#tasks.nextGeneration(taskId),
      isNumbered: true
    })
    return true
  }

  /** Adds a row to the journal of a task. */
  addJournal(row: JournalRow): A2AError | undefined {
    const { taskId, value } = row
    const bytes = jsonBytes(value)
    if (this.#tasks.has(taskId) && !this.#tasks.fits(taskId, bytes, this.#services.limits.taskBytes))
      return this.#fill(taskId, this.#tooManyBytes(taskId, bytes))
    this.#tasks.addJournalBytes(taskId, bytes)
    this.#pipeline.turn.addJournal(row)
    return undefined
  }

  /** Throws RateLimited if a task with a snapshot of this size exceeds its limit of bytes. */
  checkSnapshot(taskId: string, snapshotBytes: number): void {
    const { taskBytes } = this.#services.limits
    const bytes = this.#tasks.sizeOf(taskId, snapshotBytes)
    if (bytes <= taskBytes) return
    const error = tooManyBytes(taskBytes, bytes)
    this.#tasks.fill(taskId, error)
    throw error
  }

  #addBytes(taskId: string, added: number): void {
    const { taskBytes } = this.#services.limits
    const bytes = this.#tasks.addBytes(taskId, added)
    const most = NEARLY_FULL * taskBytes
    if (bytes >= most && bytes - added < most)
      this.#services.logger.warn('a task is near its limit of bytes', { taskId, bytes, taskBytes })
  }

  #tooManyBytes(taskId: string, added: number): A2AError {
    return (
      this.#tasks.fullBy(taskId) ?? tooManyBytes(this.#services.limits.taskBytes, this.#tasks.sizeOf(taskId) + added)
    )
  }

  /** Marks a task as full. Gives the error only once, so that the task fails once. */
  #fill(taskId: string, error: A2AError): A2AError | undefined {
    return this.#tasks.fill(taskId, error) ? error : undefined
  }
}

/** Terms of a request, which are stored with its outcome. */
export type StoredEventOptions = Pick<EventOptions, 'send' | 'webhook'>

/** Outcome of a request: the agent's answer, or the turn that opened a task. */
export type CallOutcome = { readonly reply: Message } | { readonly opened: Turn }

type Decided = { readonly taskId: string } | { readonly reply: Message } | { readonly error: unknown }

/** A call that waits for the outcome of its request, then for the commit of the turn that has it. */
class PendingCall implements TurnCallbacks {
  readonly callId: string
  readonly options: StoredEventOptions
  readonly #resolve: (outcome: CallOutcome) => void
  readonly onFailed: (error: unknown) => void
  decided: Decided | undefined

  constructor(
    callId: string,
    options: StoredEventOptions,
    resolve: (outcome: CallOutcome) => void,
    reject: (error: unknown) => void
  ) {
    this.callId = callId
    this.options = options
    this.#resolve = resolve
    this.onFailed = reject
  }

  onPublished(turn: Turn): void {
    const decided = this.decided as Decided
    if ('error' in decided) this.onFailed(decided.error)
    else this.#resolve('reply' in decided ? decided : { opened: turn })
  }
}

/** The calls of one context that wait for the outcome of their requests, by id. */
export class PendingCalls {
  #calls: readonly PendingCall[] = NONE

  /** Settles when the outcome is committed. */
  add(callId: string, options: StoredEventOptions): Promise<CallOutcome> {
    return new Promise(
      (resolve, reject) =>
        void (this.#calls = appendItem(this.#calls, new PendingCall(callId, options, resolve, reject)))
    )
  }

  has(callId: string): boolean {
    return this.#calls.some(call => call.callId === callId)
  }

  /**
   * Answers a call after the turn's commit, and stores the outcome with the turn. Ignores calls from before a restart.
   */
  settle(callId: string, turn: Turn, decided: Decided): void {
    const call = this.#calls.find(call => call.callId === callId)
    if (!call) return
    const { send, webhook } = call.options
    if (send && !('error' in decided)) turn.sends = appendItem(turn.sends, { ...send, ...decided } satisfies SendRow)
    if (webhook && 'taskId' in decided)
      turn.webhooks = appendItem(turn.webhooks, { ...webhook, taskId: decided.taskId, told: 0 })
    this.#calls = without(this.#calls, call)
    call.decided = decided
    turn.onCommit(call)
  }

  failAll(error: unknown): void {
    for (const call of this.#calls) call.onFailed(error)
    this.#calls = NONE
  }
}
