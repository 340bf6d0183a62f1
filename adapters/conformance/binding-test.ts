import { isObject } from '../../machines/protocol/codec/json.ts'
import { type ErrorCode, ERRORS } from '../../machines/protocol/errors.ts'
import type { StreamResponse, Task } from '../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../machines/protocol/operations.ts'
import { isTerminal, TASK_STATES, type TaskState } from '../../machines/protocol/states.ts'
import type { Clock } from '../../runtime/ports/clock.ts'
import type { Binding } from '../client/card/bindings.ts'
import {
  BoundReached,
  type TestBounds,
  type WireCaller,
  type Note,
  WireRefusal,
  type Stream,
  type WireParameters,
  Unanswered
} from './callers/caller.ts'
import { type EmittedContent, noteEmitted } from './emitted.ts'
import { type Moves, type ProtocolEvent, protocolStart, protocolStep } from './protocol.machine.ts'
import type { Ledger } from './requirements/ledger.ts'
import {
  expectedErrorText,
  objectMembersOf,
  type TestedInterface,
  type TestedCard,
  type OperationOutcome,
  actualErrorText,
  valueText,
  parametersText
} from './requirements/needs.ts'

/** The options for the test of one binding. */
interface BindingTestOptions extends TestedInterface {
  readonly card: TestedCard
  readonly texts: readonly string[]
  readonly ledger: Ledger
  readonly clock: Clock
  readonly bounds: TestBounds
  /** Aborts when the user stops the test. */
  readonly signal: AbortSignal
  readonly open: (note: Note) => WireCaller
  /** Whether callers send headers or credentials. */
  readonly isKnown: boolean
}

/** The requirements about operations and their names or routes, by binding. */
const METHOD_ROWS: Readonly<Record<Binding, readonly number[]>> = {
  WEBSOCKET: [16, 128, 144],
  JSONRPC: [16, 128],
  'HTTP+JSON': [19, 128],
  GRPC: [23, 128]
}

/** The number of consecutive unanswered requests after which the test ends. */
const MOST_SILENCES = 5

/** The test of one binding: sends requests within bounds, and records findings. */
export class BindingTest {
  readonly options: BindingTestOptions
  readonly #caller: WireCaller
  readonly #endsAtMs: number
  /** The newest version of each task. */
  readonly tasks = new Map<string, Task>()
  /** The ids of the tasks that messages opened. */
  readonly opened = new Set<string>()
  /** The time after which the task of each message ended or had a question. */
  readonly #stops = new Map<string, { readonly ms: number; readonly isEnd: boolean }>()
  /** The duration of streams that contained progress. */
  readonly tookMs = new Map<string, number>()
  /** Whether the server accepts a client's contextIds. */
  keepsContexts = false
  /** The errors that messages got. */
  readonly refusals = new Set<string>()
  /** The bound that ended the test, if any. */
  reached: string | undefined
  #silences = 0
  #requests = 0
  #opened = 0
  #sent = ''

  constructor(options: BindingTestOptions) {
    this.options = options
    this.#endsAtMs = options.clock.now() + options.bounds.totalMs
    this.#caller = options.open((id, isMet, wanted, found) => this.check(id, isMet, wanted, found))
  }

  get binding(): Binding {
    return this.options.binding
  }

  /** Records whether the last request meets a requirement. */
  check(id: number, isMet: boolean, wanted: string, found: unknown, isMust = true): void {
    const { ledger } = this.options
    if (isMet) ledger.meets(id)
    else ledger.misses(id, { sent: this.#sent, wanted, found: valueText(found) }, isMust)
  }

  /** Sends a request, and returns the result or the refusal. Without an answer, the requirements `ids` are not met. */
  async ask(
    ids: readonly number[],
    method: OperationMethod,
    params: object,
    parameters?: WireParameters
  ): Promise<OperationOutcome> {
    const cut = this.#begin(method, params, parameters)
    const call = this.#caller.call(method, this.#withTenant(params), { ...parameters, cut: cut.signal })
    try {
      const { result, extensions } = await this.within(call, cut)
      this.#silences = 0
      for (const id of METHOD_ROWS[this.binding]) this.check(id, true, '', undefined)
      this.noteContent({ method, streamed: false, value: result })
      if (method === 'SendMessage' && isObject(result) && isTask(result.task))
        this.tasks.set(result.task.id, result.task)
      return { result, extensions }
    } catch (error) {
      if (error instanceof WireRefusal) return this.#refusedWith(error)
      return this.#unanswered(ids, error)
    }
  }

  /**
   * Sends a request, and returns the result. After a refusal, the requirements `ids` are not met, and the move ends.
   */
  async result<T>(
    ids: readonly number[],
    method: OperationMethod,
    params: object,
    parameters?: WireParameters
  ): Promise<T> {
    const outcome = await this.ask(ids, method, params, parameters)
    if ('result' in outcome) return outcome.result as T
    for (const id of ids) this.check(id, false, 'an answer', actualErrorText(outcome.refusal))
    throw new Unanswered(outcome.refusal.message)
  }

  /** Sends a request that must be refused with an error, and records whether it is. Returns the refusal. */
  async refused(
    id: number,
    wanted: ErrorCode,
    method: OperationMethod,
    params: object,
    parameters?: WireParameters
  ): Promise<WireRefusal | undefined> {
    const isStreaming = method === 'SendStreamingMessage' || method === 'SubscribeToTask'
    const outcome = isStreaming
      ? await this.#firstOf([id], method, params, parameters)
      : await this.ask([id], method, params, parameters)
    return this.isRefusedWith(id, wanted, outcome)
  }

  /** Records whether an outcome is the expected refusal. */
  isRefusedWith(id: number, wanted: ErrorCode, outcome: OperationOutcome): WireRefusal | undefined {
    if (!('refusal' in outcome)) {
      this.check(id, false, expectedErrorText(wanted), outcome.result)
      return undefined
    }
    const { refusal } = outcome
    const { code = this.#byStatus(refusal, wanted) } = refusal
    this.check(id, code === wanted, expectedErrorText(wanted), actualErrorText(refusal))
    if (code === wanted && ERRORS[wanted].code <= -32001 && ERRORS[wanted].code > -32100) {
      this.check(
        97,
        refusal.reason === ERRORS[wanted].reason,
        `ErrorInfo with the reason ${ERRORS[wanted].reason}`,
        refusal.details,
        this.binding === 'HTTP+JSON' || this.binding === 'GRPC'
      )
    }
    return refusal
  }

  /** Opens a stream. */
  stream(ids: readonly number[], method: OperationMethod, params: object, parameters?: WireParameters): StreamObserver {
    const cut = this.#begin(method, params, parameters)
    const stream: Stream = this.#caller.stream(method, this.#withTenant(params), { ...parameters, cut: cut.signal })
    return new StreamObserver({ trial: this, stream, method, cut, ids, sent: this.#sent })
  }

  /** Sends text unchanged; `undefined` on bindings without an envelope. */
  async raw(ids: readonly number[], text: string): Promise<Record<string, unknown> | undefined> {
    if (!this.#caller.raw) return undefined
    const cut = this.#begin('', text)
    return this.within(this.#caller.raw(text), cut).catch((error: unknown) => this.#unanswered(ids, error))
  }

  /** Records how a value is written. Since gRPC carries no JSON, only its fields are checked. */
  noteContent(content: EmittedContent): void {
    noteEmitted(content, (id, ...finding) => {
      if (this.binding !== 'GRPC' || id === 5 || id === 7) this.check(id, ...finding)
    })
  }

  /** Waits for an answer within the time limit. Rejects with Unanswered. */
  async within<T>(answer: Promise<T>, cut: AbortController): Promise<T> {
    const {
      clock,
      signal,
      bounds: { answerMs }
    } = this.options
    answer.catch(() => {})
    let timer: unknown
    const late = new Promise<never>((_, reject) => {
      timer = clock.setTimeout(() => reject(new Unanswered(`no answer within ${answerMs / 1000} seconds`)), answerMs)
    })
    const stop = () => cut.abort()
    signal.addEventListener('abort', stop, { once: true })
    const failed = (error: unknown) => {
      if (error instanceof Unanswered) cut.abort()
      signal.throwIfAborted()
      throw error
    }
    try {
      return await Promise.race([answer, late]).catch(failed)
    } finally {
      clock.clearTimeout(timer)
      signal.removeEventListener('abort', stop)
    }
  }

  /** Waits. */
  async pause(ms: number): Promise<void> {
    const { clock, signal } = this.options
    await new Promise<void>(resolve => void clock.setTimeout(resolve, ms))
    signal.throwIfAborted()
  }

  /** Records a task: its state, and the facts that requirements need. */
  learn(task: Task): void {
    const { ledger } = this.options
    const {
      id,
      status: { state }
    } = task
    this.tasks.set(id, task)
    ledger.learn('task')
    if (isTerminal(state)) ledger.learn('ended')
    if (state === 'TASK_STATE_INPUT_REQUIRED') ledger.learn('question')
    if (state === 'TASK_STATE_AUTH_REQUIRED') ledger.learn('auth')
  }

  /** Records that the task of a message stopped by itself: it ended, or has a question. */
  noteStop(text: string, ms: number, isEnd: boolean): void {
    if (!this.#stops.has(text)) this.#stops.set(text, { ms, isEnd })
  }

  /** The requirements that a late answer of SendMessage violates: none if the task may take that long. */
  answersIn(text: string): number[] {
    const { ms, isEnd } = this.#stops.get(text) ?? { ms: Infinity, isEnd: true }
    return ms < this.options.bounds.answerMs / 2 ? [isEnd ? 35 : 36] : []
  }

  /** Lists the tasks of a context. */
  async findTasks(context: object): Promise<void> {
    const outcome = await this.ask([], 'ListTasks', context)
    if ('result' in outcome && isObject(outcome.result) && Array.isArray(outcome.result.tasks))
      for (const task of outcome.result.tasks.filter(isTask)) this.learn(task)
  }

  /** Whether a task of a context is known. */
  hasTaskIn(contextId: string): boolean {
    return [...this.tasks.values()].some(task => task.contextId === contextId)
  }

  /** The answer to a question of this text's task: the next text. */
  answerFor(text: string): string {
    const { texts } = this.options
    return String(texts[(texts.indexOf(text) + 1) % texts.length])
  }

  /** Counts a task that is about to be opened. */
  opens(): void {
    this.#opened += 1
    if (this.#opened > this.options.bounds.tasks) throw this.#reaches(`${this.options.bounds.tasks} tasks`)
  }

  /** Sets the request that later findings refer to. */
  isAbout(sent: string): void {
    this.#sent = sent
  }

  close(): void {
    this.#caller.close()
  }

  async #firstOf(
    ids: readonly number[],
    method: OperationMethod,
    params: object,
    parameters?: WireParameters
  ): Promise<OperationOutcome> {
    const listening = this.stream(ids, method, params, parameters)
    const first = await listening.next()
    listening.leave()
    return listening.refusal ? { refusal: listening.refusal } : { result: first, extensions: '' }
  }

  #refusedWith(refusal: WireRefusal): OperationOutcome {
    this.#silences = 0
    const { code, native } = refusal
    const isThere = code !== 'MethodNotFound' && !native.startsWith('405') && native !== 'UNIMPLEMENTED'
    for (const id of METHOD_ROWS[this.binding]) this.check(id, isThere, 'this operation', actualErrorText(refusal))
    return { refusal }
  }

  #begin(method: string, params: object | string, parameters: WireParameters = {}): AbortController {
    const { bounds, clock, signal } = this.options
    signal.throwIfAborted()
    this.#requests += 1
    if (this.#requests > bounds.requests) throw this.#reaches(`${bounds.requests} requests`)
    if (clock.now() > this.#endsAtMs) throw this.#reaches(`${bounds.totalMs / 1000} seconds`)
    this.#sent =
      `${method} ${typeof params === 'string' ? params : JSON.stringify(params)}${parametersText(parameters)}`.trim()
    return new AbortController()
  }

  #reaches(bound: string): BoundReached {
    this.reached = bound
    return new BoundReached(bound)
  }

  #unanswered(ids: readonly number[], error: unknown): never {
    this.options.signal.throwIfAborted()
    const { message } = error as Error
    this.#silences += 1
    if (this.#silences >= MOST_SILENCES) throw this.#reaches(`${MOST_SILENCES} requests in a row without an answer`)
    for (const id of ids) this.check(id, false, 'an answer', message)
    throw new Unanswered(message, { cause: error })
  }

  /** Without ErrorInfo or a number, the status identifies the error. */
  #byStatus({ native }: WireRefusal, wanted: ErrorCode): ErrorCode | undefined {
    const { http, grpc } = ERRORS[wanted]
    const status = { 'HTTP+JSON': String(http), GRPC: grpc, JSONRPC: '', WEBSOCKET: '' }[this.binding]
    return native.split(' ')[0] === status ? wanted : undefined
  }

  #withTenant(params: object): object {
    const { tenant } = this.options
    return tenant === undefined ? params : { ...params, tenant }
  }
}

/** Whether a value is a task, as far as canceling it needs. */
function isTask(value: unknown): value is Task {
  return (
    isObject(value) &&
    typeof value.id === 'string' &&
    Object.hasOwn(TASK_STATES, String(objectMembersOf(value.status).state))
  )
}

/** A stream, and its trial. */
interface ListeningOptions {
  readonly trial: BindingTest
  readonly stream: Stream
  readonly method: OperationMethod
  readonly cut: AbortController
  /** The requirements that a broken stream violates. */
  readonly ids: readonly number[]
  readonly sent: string
}

/** Why reading stopped: the stream ended; it was silent; the condition holds; it never ends. */
export type Rest = 'ended' | 'silent' | 'there' | 'endless'

/** The limit above which a stream counts as endless. */
const MOST_EVENTS = 2000

/** Reads a stream, and records whether its task's states follow the protocol. */
export class StreamObserver {
  readonly events: StreamResponse[] = []
  readonly course = new ObservedTask()
  refusal: WireRefusal | undefined
  readonly #options: ListeningOptions
  #pending: Promise<StreamResponse | undefined> | undefined

  constructor(options: ListeningOptions) {
    this.#options = options
  }

  /** The next event; `undefined` at the end, after a refusal, and after a recorded failure. */
  async next(): Promise<StreamResponse | undefined> {
    const rest = await this.read(() => true)
    if (rest !== 'silent') return rest === 'there' ? this.events.at(-1) : undefined
    const { trial, ids } = this.#options
    for (const id of ids)
      trial.check(id, false, 'an event, or an end', `nothing within ${trial.options.bounds.answerMs / 1000} seconds`)
    this.leave()
    throw new Unanswered('the stream is silent')
  }

  /** Reads until a condition holds after an event. */
  async read(holds: () => boolean = () => false): Promise<Rest> {
    const { trial, stream, cut, ids, sent } = this.#options
    for (;;) {
      this.#pending ??= stream.next()
      const event = await this.#arrival(this.#pending)
      trial.isAbout(sent)
      if (event === 'silent') return 'silent'
      this.#pending = undefined
      if (event instanceof WireRefusal) {
        this.refusal = event
        return 'ended'
      }
      if (event instanceof Error) {
        for (const id of ids) trial.check(id, false, 'a stream that ends in order', event.message)
        cut.abort()
        throw new Unanswered(event.message, { cause: event })
      }
      if (event === undefined) return 'ended'
      this.#noteEvent(event)
      if (holds()) return 'there'
      if (this.events.length >= MOST_EVENTS) return 'endless'
    }
  }

  leave(): void {
    this.#options.stream.leave()
  }

  async #arrival(pending: Promise<StreamResponse | undefined>): Promise<StreamResponse | Error | 'silent' | undefined> {
    const { trial } = this.#options
    try {
      // A time-out must not cancel the stream.
      return await trial.within(pending, new AbortController())
    } catch (error) {
      trial.options.signal.throwIfAborted()
      return error instanceof Unanswered ? 'silent' : (error as Error)
    }
  }

  #noteEvent(value: unknown): void {
    const { trial, method } = this.#options
    trial.noteContent({ method, streamed: true, value })
    const event = objectMembersOf(value)
    this.events.push(event as unknown as StreamResponse)
    const wasOver = this.course.isOver
    const state = stateIn(event)
    const wrong = state && this.course.see(state)
    trial.check(wasOver ? 80 : 54, wrong === undefined, 'a state that may follow', wrong)
    if (wasOver && !('task' in event)) trial.check(80, false, 'nothing after the end of the task', event)
  }
}

/** The state in an unvalidated event. */
export function stateIn(event: object): TaskState | 'reply' | undefined {
  if ('message' in event) return 'reply'
  const { task, statusUpdate } = objectMembersOf(event)
  const { state } = objectMembersOf(objectMembersOf(task ?? statusUpdate).status)
  return isState(state) ? state : undefined
}

function isState(state: unknown): state is TaskState {
  return typeof state === 'string' && Object.hasOwn(TASK_STATES, state)
}

/** The observed states of one task, checked against the chart. */
export class ObservedTask {
  #snapshot = protocolStart()

  /** Records a message in reply, or a task's state. Returns a description of an illegal transition. */
  see(state: TaskState | 'reply'): string | undefined {
    const event: ProtocolEvent = { type: state === 'reply' ? 'reply.seen' : `${TASK_STATES[state].chart}.seen` }
    const before = this.state
    if (`${before}.seen` === event.type) return undefined
    if (!this.#snapshot.can(event)) return `the task went from ${before} to ${event.type.replace('.seen', '')}`
    this.#snapshot = protocolStep(this.#snapshot, event)
    return undefined
  }

  /** The innermost state of the chart: `unopened`, `working`. */
  get state(): string {
    const { value } = this.#snapshot
    return typeof value === 'string' ? value : String(Object.values(value)[0])
  }

  /** Whether the task has ended. */
  get isOver(): boolean {
    return this.#snapshot.hasTag('over')
  }

  /** The moves in this state. */
  get moves(): Moves {
    return Object.assign({}, ...Object.values(this.#snapshot.getMeta()).map(meta => meta?.moves)) as Moves
  }
}
