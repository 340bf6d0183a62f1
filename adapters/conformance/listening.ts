import type { StreamResponse } from '../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../machines/protocol/operations.ts'
import { TASK_STATES, type TaskState } from '../../machines/protocol/states.ts'
import type { BindingTest } from './binding-test.ts'
import { Unanswered } from './bounds.ts'
import { Refusal, type Stream } from './callers/caller.ts'
import { fieldsOf } from './fields-of.ts'
import { ObservedTask } from './observed-task.ts'

/** A stream, and its trial. */
export interface ListeningOptions {
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
