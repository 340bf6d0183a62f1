import type { Schema } from '../../machines/protocol/codec/decode.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { ANSWER_SCHEMAS, type StreamResponse, type Task } from '../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../machines/protocol/operations.ts'
import { isInterrupted, isPause, isReplyEnd, isTerminal, type TaskState } from '../../machines/protocol/states.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import { rejectUnknown } from '../../runtime/primitives/options.ts'
import type { TraceCarrier } from '../../runtime/telemetry-port.ts'
import type { CallOptions } from './agent-client.ts'
import { AgentGenerations, type EventGeneration, EventOrder } from './generations.ts'
import { readLeniently, type KnownTask } from './lenient-reading.ts'
import { mention, warnOf } from './warnings.ts'

/** The wire form of a request: its method, its params, and service parameters of its own. */
export interface RequestFrame {
  readonly method: OperationMethod
  readonly params: unknown
  readonly parameters?: Readonly<Record<string, string>>
  /** The trace context, if the call is traced: further service parameters. */
  readonly trace?: TraceCarrier | undefined
  /** The events of a stream that its reader has. With events in it, this request continues the stream. */
  readonly progress?: StreamProgress
}

const CALL_PARAMETERS = Object.keys({
  afterGeneration: true,
  ifGenerationMatch: true,
  currentGeneration: true,
  extensions: true,
  serviceParameters: true
} satisfies Record<keyof ParameterOptions, true>)

/** The options of a call that become service parameters. */
export type ParameterOptions = Omit<CallOptions, 'signal'>

/** The service parameters for the options of a call. Conditions need the reliability extension in this form. */
export function serviceParametersOf(options: ParameterOptions): Record<string, string> {
  rejectUnknown(options, CALL_PARAMETERS, 'A call')
  const { afterGeneration, ifGenerationMatch, currentGeneration, extensions = [], serviceParameters = {} } = options
  const own = Object.fromEntries(
    Object.entries(serviceParameters).map(([name, value]) => [name.toLowerCase(), value] as const)
  )
  const { 'a2a-extensions': more = '' } = own
  const requested = [...extensions, ...(more === '' ? [] : [more])].join(',')
  return {
    ...own,
    ...(requested !== '' && { 'a2a-extensions': requested }),
    ...(afterGeneration !== undefined && { 'taskchart-after-generation': String(afterGeneration) }),
    ...(ifGenerationMatch !== undefined && { 'taskchart-if-generation-match': String(ifGenerationMatch) }),
    ...(currentGeneration !== undefined && { 'taskchart-current-generation': String(currentGeneration) })
  }
}

/** The service parameters of a request without its conditions, for the requests that continue it. */
export function lastingParameters({ parameters = {} }: RequestFrame): Record<string, string> {
  const lasting = Object.entries(parameters).filter(([name]) => !/^taskchart-.+-generation(?:-match)?$/.test(name))
  return Object.fromEntries(lasting)
}

/** A pending request, which may have to be sent again after a lost connection. */
export interface ClientRequest {
  /** The frame for the first connection. */
  readonly frame: RequestFrame
  /** Whether the result is complete. If the agent then stops without an explicit end, the request has succeeded. */
  readonly mayEnd: boolean
  /** Whether the request changes something and has no answer yet, so that its outcome is unknown. */
  readonly isOpenQuestion: boolean
  /**
   * The frame that resumes the request exactly on a new connection. `undefined` if it cannot be resumed: then it is
   * unknown whether the agent received the request. `reliable`: the agent has the reliability extension.
   */
  again(reliable: boolean): RequestFrame | undefined
  /** Returns whether the result could be read. An event of a stream that cannot be read is skipped. */
  result(value: unknown): boolean
  failed(error: unknown): void
  /** The stream has ended. */
  ended(): void
}

/** Whether a method only reads, may be sent twice (§3.3.1), and is answered with a stream. */
interface MethodTraits {
  readonly reads: boolean
  readonly repeatable: boolean
  readonly streams: boolean
}

/** The methods as a client sends them. */
export const METHODS: Readonly<Record<OperationMethod, MethodTraits>> = {
  SendMessage: { reads: false, repeatable: false, streams: false },
  SendStreamingMessage: { reads: false, repeatable: false, streams: true },
  GetTask: { reads: true, repeatable: true, streams: false },
  ListTasks: { reads: true, repeatable: true, streams: false },
  CancelTask: { reads: false, repeatable: true, streams: false },
  SubscribeToTask: { reads: true, repeatable: true, streams: true },
  CreateTaskPushNotificationConfig: { reads: false, repeatable: false, streams: false },
  GetTaskPushNotificationConfig: { reads: true, repeatable: true, streams: false },
  ListTaskPushNotificationConfigs: { reads: true, repeatable: true, streams: false },
  DeleteTaskPushNotificationConfig: { reads: false, repeatable: true, streams: false },
  GetExtendedAgentCard: { reads: true, repeatable: true, streams: false }
}

/** A request with a single answer. */
export class UnaryRequest implements ClientRequest {
  readonly frame: RequestFrame
  readonly #settle: (value: unknown) => void
  readonly failed: (error: unknown) => void

  constructor(frame: RequestFrame, result: (value: unknown) => void, failed: (error: unknown) => void) {
    this.frame = frame
    this.#settle = result
    this.failed = failed
  }

  result(value: unknown): boolean {
    this.#settle(value)
    return true
  }

  /** The connection ends only after an answer or an error. */
  get mayEnd(): boolean {
    return true
  }

  get isOpenQuestion(): boolean {
    return !METHODS[this.frame.method].repeatable
  }

  again(reliable: boolean): RequestFrame | undefined {
    return reliable || METHODS[this.frame.method].repeatable ? this.frame : undefined
  }

  ended(): void {
    this.failed(new TypeError(`${this.frame.method} was answered with a stream.`))
  }
}

/** A request with a stream of events, for one reader. */
export class StreamRequest implements ClientRequest, AsyncIterable<StreamResponse> {
  readonly frame: RequestFrame
  readonly #url: string
  readonly #waiting: StreamResponse[] = []
  #taskId: string | undefined
  #contextId = ''
  /** Why the first event that could not be read was skipped. */
  #skipped: unknown
  #hasRead = false
  #state: TaskState | undefined
  #isAnswered = false
  #isResumed = false
  #end: { error?: unknown } | undefined
  #isOver = false
  /** The task that the request names. */
  readonly #known: KnownTask
  readonly #generations: AgentGenerations
  readonly #order: EventOrder
  #wake = () => {}

  /** `url` is that of the agent, whose events show its generations. */
  constructor(frame: RequestFrame, url: string, generations = new AgentGenerations()) {
    this.frame = frame
    this.#url = url
    this.#known = knownFrom(frame.params)
    this.#generations = generations
    this.#order = new EventOrder(generations)
  }

  /** Whether the agent may still send events of this stream. */
  get isOpenThere(): boolean {
    return !this.#isOver
  }

  /** The error of a stream of which no event could be read; `undefined` if it has none, or if one could be read. */
  get unread(): unknown {
    return this.#hasRead ? undefined : this.#skipped
  }

  /**
   * Whether the agent answered with a message, the task has ended or waits for its client, or nothing could be read.
   */
  get mayEnd(): boolean {
    return this.#isAnswered || this.unread !== undefined || (this.#state !== undefined && isPause(this.#state))
  }

  get isOpenQuestion(): boolean {
    return !METHODS[this.frame.method].repeatable && this.#taskId === undefined
  }

  /** Whether an event has reported the task's state. */
  get knowsState(): boolean {
    return this.#state !== undefined
  }

  again(reliable: boolean): RequestFrame | undefined {
    if (this.#isAnswered || this.#isAtEnd()) {
      this.ended()
      return undefined
    }
    if (this.#taskId === undefined) return reliable || METHODS[this.frame.method].repeatable ? this.frame : undefined
    this.#isResumed = true
    this.#order.resume()
    const { cursor } = this.#order
    const parameters = {
      ...lastingParameters(this.frame),
      ...serviceParametersOf(cursor === undefined ? {} : { afterGeneration: cursor })
    }
    return {
      method: 'SubscribeToTask',
      params: { ...tenantOf(this.frame.params), id: this.#taskId },
      parameters,
      trace: this.frame.trace
    }
  }

  result(value: unknown): boolean {
    const answer = this.#read(value)
    if (!answer) return false
    this.#hasRead = true
    const event = this.#ofTask(answer)
    const reference = taskReferenceOf(event)
    const fresh = this.#order.take(event, reference)
    if (fresh.length === 0) return true
    this.#taskId ??= reference.taskId
    this.#contextId ||= reference.contextId ?? ''
    for (const one of fresh) this.#state = stateOf(one) ?? this.#state
    this.#isAnswered ||= 'message' in event
    this.#waiting.push(...fresh)
    if (this.#isResumed && this.#isAtEnd()) this.#finish({})
    else this.#wake()
    return true
  }

  failed(error: unknown): void {
    this.#isOver = true
    this.#finish({ error })
  }

  ended(): void {
    this.#isOver = true
    this.#finish(this.unread === undefined ? {} : { error: this.unread })
  }

  /** Ends the stream for its reader with this error. The agent still sends it. */
  abandon(error: unknown): void {
    this.#finish({ error })
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StreamResponse, void, undefined> {
    for (;;) {
      const event = this.#waiting.shift()
      if (event) yield event
      else if (this.#end) break
      else await new Promise<void>(resolve => (this.#wake = resolve))
    }
    if ('error' in this.#end) throw this.#end.error
  }

  /**
   * Ends where SendStreamingMessage ends: when the client has to act. Its resumption is a subscription, which does not
   * end there.
   */
  #isAtEnd(): boolean {
    if (this.#state === undefined) return false
    return this.frame.method === 'SendStreamingMessage' ? isReplyEnd(this.#state) : isTerminal(this.#state)
  }

  /** A message after events of a task is not its answer: it is news of the task. */
  #ofTask(event: StreamResponse): StreamResponse {
    if (!('message' in event) || this.#taskId === undefined) return event
    mention('A message came between the events of a task. It was read as a status update.')
    return {
      statusUpdate: {
        taskId: this.#taskId,
        contextId: this.#contextId,
        status: { state: this.#state ?? 'TASK_STATE_WORKING', message: event.message }
      }
    }
  }

  #read(value: unknown): StreamResponse | undefined {
    const known = { taskId: this.#taskId ?? this.#known.taskId, contextId: this.#contextId || this.#known.contextId }
    try {
      return validAnswer(ANSWER_SCHEMAS[this.#generations.version].event, value, this.#url, known)
    } catch (error) {
      this.#skipped ??= error
      warnOf(this.#url)(`${(error as A2AError).message} The event was skipped.`)
      return undefined
    }
  }

  #finish(end: { error?: unknown }): void {
    this.#end ??= end
    this.#wake()
  }
}

/**
 * Reads an agent's result leniently, with warnings. Throws InvalidAgentResponse with the field if it does not match the
 * method.
 */
export function validAnswer<T>(schema: Schema<T>, value: unknown, url: string, known: KnownTask = {}): T {
  const { value: valid, violations } = readLeniently(schema, value, warnOf(url), { known })
  if (!violations) return valid
  const [first] = violations
  throw new A2AError(
    'InvalidAgentResponse',
    `The agent's answer is not A2A 1.0: ${first?.field} ${first?.description}.`,
    { violations }
  )
}

/** The task and context that the params of a request name. */
export function knownFrom(params: unknown): KnownTask {
  const { id, contextId, message } = params as {
    readonly id?: string
    readonly contextId?: string
    readonly message?: KnownTask
  }
  return { taskId: message?.taskId ?? id, contextId: message?.contextId ?? contextId }
}

/** The tenant of a request, for its resumption. */
export function tenantOf(params: unknown): { tenant?: unknown } {
  return isObject(params) && params.tenant !== undefined ? { tenant: params.tenant } : {}
}

/** The state in an event; `undefined` if it has none. */
export function stateOf(event: StreamResponse): TaskState | undefined {
  if ('task' in event) return event.task.status.state
  return 'statusUpdate' in event ? event.statusUpdate.status.state : undefined
}

interface Place extends KnownTask, EventGeneration {}

/**
 * The task of an event, its context, and its generation if the agent sends one: as a member in 1.1, else in the
 * metadata of the reliability extension.
 */
export function taskReferenceOf(event: Exclude<StreamResponse, { message: unknown }>): Place & { taskId: string }
export function taskReferenceOf(event: StreamResponse): Place
export function taskReferenceOf(event: StreamResponse): Place {
  if ('message' in event) return {}
  const [taskId, { contextId, metadata, generation: member }] =
    'task' in event
      ? [event.task.id, event.task]
      : 'statusUpdate' in event
        ? [event.statusUpdate.taskId, event.statusUpdate]
        : [event.artifactUpdate.taskId, event.artifactUpdate]
  const reliability = metadata?.[RELIABILITY_EXTENSION]
  const generation =
    typeof reliability === 'object' && reliability !== null && 'generation' in reliability
      ? reliability.generation
      : undefined
  const isExact = typeof generation === 'number'
  if (member !== undefined) return { taskId, contextId, generation: Number(member), isExact }
  return { taskId, contextId, ...(isExact && { generation, isExact }) }
}

/** The progress of a stream. */
export class StreamProgress {
  /** Whether the stream is that of a message, which ends where its task waits for the client. */
  readonly isSend: boolean
  taskId: string | undefined
  contextId: string | undefined
  hasEvents = false
  /** Whether the events show all of the task. After a lost connection, or a second snapshot, some may be missing. */
  isWhole = true
  /** Whether the last event skipped a generation, and nothing says that this was only a client's message. */
  hasGap = false
  /** The generation after which the agent can go on exactly; `undefined` without the reliability extension. */
  cursor: number | undefined
  #generation: number | undefined
  #state: TaskState | undefined

  constructor(isSend: boolean) {
    this.isSend = isSend
  }

  note(event: StreamResponse): void {
    const { taskId, contextId, generation, isExact = false } = taskReferenceOf(event)
    this.isWhole = isExact || (this.isWhole && 'task' in event === !this.hasEvents)
    this.hasGap = !isExact && !('task' in event) && Number(generation) > Number(this.#generation) + 1
    this.#generation = generation
    this.cursor = isExact ? generation : undefined
    this.taskId ??= taskId
    this.contextId ||= contextId
    this.#state = stateOf(event) ?? this.#state
    this.hasEvents = true
  }

  /** Notes a task that was read in place of an event: it has all that events before it may lack. */
  noteRead(task: Task): void {
    this.note({ task })
    this.isWhole = true
  }

  /** Whether a task that was read already includes an event. */
  includes(event: StreamResponse): boolean {
    return Number(taskReferenceOf(event).generation) <= Number(this.#generation)
  }

  /** Whether the stream of a message has ended before its task, which does not wait for the client. */
  get isUnfinished(): boolean {
    return this.isSend && this.taskId !== undefined && !this.isAtEnd
  }

  get isAtEnd(): boolean {
    return this.hasEnded || (this.isSend && this.#state !== undefined && isInterrupted(this.#state))
  }

  /** Whether the stream of a message has its last event. A subscription that continues it does not end there. */
  get isAnswered(): boolean {
    return this.isSend && this.#state !== undefined && isReplyEnd(this.#state)
  }

  get hasEnded(): boolean {
    return this.#state !== undefined && isTerminal(this.#state)
  }

  /** Whether the task has ended, and earlier events may be missing. */
  get mayLackEvents(): boolean {
    return !this.isWhole && this.hasEnded
  }
}
