import { tryDecode } from '../../machines/protocol/codec/decode.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { Schema } from '../../machines/protocol/codec/values.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { StreamResponseSchema, type StreamResponse } from '../../machines/protocol/objects.ts'
import { isInterrupted, isTerminal, type TaskState } from '../../machines/protocol/states.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import type { Conditions } from '../../runtime/access/call-context.ts'
import { rejectUnknown } from '../../runtime/primitives/options.ts'
import type { TraceCarrier } from '../../runtime/telemetry/telemetry.ts'

/** What goes over the wire for a request: its method and params, and service parameters of its own. */
export interface RequestFrame {
  readonly method: string
  readonly params: unknown
  readonly parameters?: Readonly<Record<string, string>>
  /** Where it belongs, if it is traced: further service parameters. */
  readonly trace?: TraceCarrier | undefined
}

/** The names of a call's conditions. */
const CONDITIONS = Object.keys({ afterGeneration: true, ifGenerationMatch: true, currentGeneration: true } satisfies Record<keyof Conditions, true>)

/** The service parameters that say a call's conditions, which count with the reliability extension. */
export function parametersOf(conditions: Conditions): Record<string, string> {
  rejectUnknown(conditions, CONDITIONS, 'A call')
  const { afterGeneration, ifGenerationMatch, currentGeneration } = conditions
  return {
    ...(afterGeneration !== undefined && { 'taskchart-after-generation': String(afterGeneration) }),
    ...(ifGenerationMatch !== undefined && { 'taskchart-if-generation-match': String(ifGenerationMatch) }),
    ...(currentGeneration !== undefined && { 'taskchart-current-generation': String(currentGeneration) })
  }
}

/** A request under way, which may have to be sent again when the connection was lost. */
export interface ClientRequest {
  /** What to send on the first connection. */
  readonly frame: RequestFrame
  /** Whether nothing more has to come: where the other side stops without a word, this was the end. */
  readonly mayEnd: boolean
  /** Whether it asks for a change, and nothing has come that says what became of it. */
  readonly isOpenQuestion: boolean
  /**
   * What to send on a new connection to go on exactly where the lost one left off; `undefined` if that cannot be, for
   * then nobody knows whether the agent took the request. `reliable`: the agent has the reliability extension.
   */
  again(reliable: boolean): RequestFrame | undefined
  result(value: unknown): void
  failed(error: unknown): void
  /** The stream is at its end. */
  ended(): void
}

/** Methods that may be sent twice: they change nothing, or the same thing again (§3.3.1). */
const REPEATABLE: readonly string[] = ['GetTask', 'ListTasks', 'CancelTask', 'SubscribeToTask', 'GetExtendedAgentCard']

/** A request with one answer. */
export class UnaryRequest implements ClientRequest {
  readonly frame: RequestFrame
  readonly result: (value: unknown) => void
  readonly failed: (error: unknown) => void

  constructor(frame: RequestFrame, result: (value: unknown) => void, failed: (error: unknown) => void) {
    this.frame = frame
    this.result = result
    this.failed = failed
  }

  /** Its answer is there by then, or an error was. */
  get mayEnd(): boolean {
    return true
  }

  get isOpenQuestion(): boolean {
    return !REPEATABLE.includes(this.frame.method)
  }

  again(reliable: boolean): RequestFrame | undefined {
    return reliable || REPEATABLE.includes(this.frame.method) ? this.frame : undefined
  }

  ended(): void {
    this.failed(new TypeError(`${this.frame.method} was answered as a stream.`))
  }
}

/** A request with a stream of events. For one reader. */
export class StreamRequest implements ClientRequest, AsyncIterable<StreamResponse> {
  readonly frame: RequestFrame
  readonly #waiting: StreamResponse[] = []
  #taskId: string | undefined
  #generation = 0
  #state: TaskState | undefined
  #isAnswered = false
  #isResumed = false
  #end: { error?: unknown } | undefined
  #isOver = false
  #wake = () => {}

  constructor(frame: RequestFrame) {
    this.frame = frame
  }

  /** True while the other side may still send events of this stream. */
  get isOpenThere(): boolean {
    return !this.#isOver
  }

  /** The agent answered with a message, or the task has ended or waits for its client. */
  get mayEnd(): boolean {
    return this.#isAnswered || (this.#state !== undefined && (isTerminal(this.#state) || isInterrupted(this.#state)))
  }

  get isOpenQuestion(): boolean {
    return !REPEATABLE.includes(this.frame.method) && this.#taskId === undefined
  }

  /** Whether what came so far tells the task's state. */
  get knowsState(): boolean {
    return this.#state !== undefined
  }

  again(reliable: boolean): RequestFrame | undefined {
    if (this.#taskId === undefined) return reliable || REPEATABLE.includes(this.frame.method) ? this.frame : undefined
    if (this.#isAtEnd()) {
      this.ended()
      return undefined
    }
    this.#isResumed = true
    const parameters = parametersOf(this.#generation > 0 ? { afterGeneration: this.#generation } : {})
    return { method: 'SubscribeToTask', params: { ...tenantOf(this.frame.params), id: this.#taskId }, parameters, trace: this.frame.trace }
  }

  result(value: unknown): void {
    const event = this.#checked(value)
    if (!event) return
    const { taskId, generation } = placeOf(event)
    if (generation !== undefined && generation <= this.#generation) return
    this.#taskId ??= taskId
    this.#generation = generation ?? this.#generation
    this.#state = stateOf(event) ?? this.#state
    this.#isAnswered ||= 'message' in event
    this.#waiting.push(event)
    if (this.#isResumed && this.#isAtEnd()) this.#finish({})
    else this.#wake()
  }

  failed(error: unknown): void {
    this.#isOver = true
    this.#finish({ error })
  }

  ended(): void {
    this.#isOver = true
    this.#finish({})
  }

  /** The reader has enough, and gets this error; the other side does not know yet. */
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

  /** A reply's stream ends where its client has to act, also when it goes on as a subscription, which would not. */
  #isAtEnd(): boolean {
    if (this.#state === undefined) return false
    return isTerminal(this.#state) || (this.#state === 'TASK_STATE_INPUT_REQUIRED' && this.frame.method === 'SendStreamingMessage')
  }

  #checked(value: unknown): StreamResponse | undefined {
    try {
      return validAnswer(StreamResponseSchema, value)
    } catch (error) {
      this.abandon(error)
      return undefined
    }
  }

  #finish(end: { error?: unknown }): void {
    this.#end ??= end
    this.#wake()
  }
}

/** What an agent answered, in canonical form. Throws InvalidAgentResponse, naming the field, if it is not what the method answers with. */
export function validAnswer<T>(schema: Schema<T>, value: unknown): T {
  const { value: valid, violations } = tryDecode(schema, value, 'result')
  if (!violations) return valid
  const [first] = violations
  throw new A2AError('InvalidAgentResponse', `The agent's answer is not A2A 1.0: ${first?.field} ${first?.description}.`, { violations })
}

/** The tenant that a request names, for those that go on with it. */
function tenantOf(params: unknown): { tenant?: unknown } {
  return isObject(params) && params.tenant !== undefined ? { tenant: params.tenant } : {}
}

function stateOf(event: StreamResponse): TaskState | undefined {
  if ('task' in event) return event.task.status.state
  return 'statusUpdate' in event ? event.statusUpdate.status.state : undefined
}

/** Where an event stands: its task, and its generation if the agent tells it. */
export function placeOf(event: StreamResponse): { taskId?: string; generation?: number } {
  if ('message' in event) return {}
  const [taskId, metadata] =
    'task' in event ? [event.task.id, event.task.metadata]
    : 'statusUpdate' in event ? [event.statusUpdate.taskId, event.statusUpdate.metadata]
    : [event.artifactUpdate.taskId, event.artifactUpdate.metadata]
  const told = metadata?.[RELIABILITY_EXTENSION]
  const generation = typeof told === 'object' && told !== null && 'generation' in told ? told.generation : undefined
  return { taskId, ...(typeof generation === 'number' && { generation }) }
}
