import { getInitialSnapshot, getNextSnapshot } from 'xstate'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { StreamResponse, Task } from '../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../machines/protocol/operations.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import type { SendMessageConfiguration, SendMessageRequest } from '../../machines/protocol/requests.ts'
import { TASK_STATES, type TaskState } from '../../machines/protocol/states.ts'
import type { BindingTest } from './binding-test.ts'
import { Refusal, type Stream, Unanswered } from './callers/caller.ts'
import { type Moves, type ProtocolEvent, protocolMachine } from './protocol.machine.ts'
import { fieldsOf } from './requirements/needs.ts'

/** The subject of a test: at first nothing, then the task or message in the answer. */
export class SubjectUnderTest {
  readonly course = new ObservedTask()
  readonly trial: BindingTest
  /** The text of its opening message. */
  readonly text: string
  /** The messages sent to it. */
  readonly sent: Message[] = []
  /** Its newest version. */
  task: Task = NO_TASK
  /** Whether it was canceled: then its end says nothing about its work. */
  isCanceled = false
  /** The first version after its end. */
  atEnd: Task | undefined

  readonly #openedMs: number

  constructor(trial: BindingTest, text: string) {
    this.trial = trial
    this.#openedMs = trial.options.clock.now()
    this.text = text
  }

  /** Records and returns the task in an answer. Anything but a task ends the move. */
  see(found: unknown): Task {
    const state = stateIn({ task: found })
    if (!isObject(found) || typeof found.id !== 'string' || state === undefined || state === 'reply')
      throw new Unanswered('no task')
    const { clock } = this.trial.options
    const wasOver = this.course.isOver
    const wrong = this.course.see(state)
    this.trial.check(wasOver ? 80 : 54, wrong === undefined, 'a state that may follow', wrong)
    const task = found as unknown as Task
    this.task = task
    this.trial.learn(task)
    if (this.isStopped && !this.isCanceled && this.sent.length === 1)
      this.trial.noteStop(this.text, clock.now() - this.#openedMs, this.course.isOver)
    return task
  }

  /** Reads the task. */
  async read(ids: readonly number[] = [65], more: { readonly historyLength?: number } = {}): Promise<Task> {
    const task = this.see(await this.trial.result(ids, 'GetTask', { id: this.id, ...more }))
    if (this.course.isOver) this.atEnd ??= task
    return task
  }

  /** Reads the task until a condition holds, within the time limit of an answer. */
  async readUntil(holds: () => boolean): Promise<boolean> {
    const { clock, bounds } = this.trial.options
    const end = clock.now() + bounds.answerMs
    while (!holds() && clock.now() < end) {
      await this.trial.pause(PAUSE_MS)
      await this.read()
    }
    return holds()
  }

  get id(): string {
    return this.task.id
  }

  /** Whether it waits for its client, or has ended. */
  get isStopped(): boolean {
    return this.course.isOver || this.course.state === 'inputRequired' || this.course.state === 'authRequired'
  }

  /** Makes and records a message to it, or the opening message. */
  says(text: string, more: Partial<Message> = {}, configuration?: SendMessageConfiguration): SendMessageRequest {
    const message: Message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more }
    this.sent.push(message)
    return { message, ...(configuration && { configuration }) }
  }
}

/** A placeholder before the first task. */
const NO_TASK: Task = { id: '', status: { state: 'TASK_STATE_SUBMITTED' } }

/** The interval between reads of a task. */
const PAUSE_MS = 100

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
export class Listening {
  readonly events: StreamResponse[] = []
  readonly course = new ObservedTask()
  refusal: Refusal | undefined
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
      if (event instanceof Refusal) {
        this.refusal = event
        return 'ended'
      }
      if (event instanceof Error) {
        for (const id of ids) trial.check(id, false, 'a stream that ends in order', event.message)
        cut.abort()
        throw new Unanswered(event.message, { cause: event })
      }
      if (event === undefined) return 'ended'
      this.#hear(event)
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

  #hear(value: unknown): void {
    const { trial, method } = this.#options
    trial.hear({ method, streamed: true, value })
    const event = fieldsOf(value)
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
  const { task, statusUpdate } = fieldsOf(event)
  const { state } = fieldsOf(fieldsOf(task ?? statusUpdate).status)
  return isState(state) ? state : undefined
}

function isState(state: unknown): state is TaskState {
  return typeof state === 'string' && Object.hasOwn(TASK_STATES, state)
}

/** The observed states of one task, checked against the chart. */
export class ObservedTask {
  #snapshot = getInitialSnapshot(protocolMachine)

  /** Records a message in reply, or a task's state. Returns a description of an illegal transition. */
  see(state: TaskState | 'reply'): string | undefined {
    const event: ProtocolEvent = { type: state === 'reply' ? 'reply.seen' : `${TASK_STATES[state].chart}.seen` }
    const before = this.state
    if (`${before}.seen` === event.type) return undefined
    if (!this.#snapshot.can(event)) return `the task went from ${before} to ${event.type.replace('.seen', '')}`
    this.#snapshot = getNextSnapshot(protocolMachine, this.#snapshot, event)
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
