import type { StreamResponse } from '../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../machines/protocol/operations.ts'
import { TASK_STATES, type TaskState } from '../../machines/protocol/states.ts'
import type { BindingTest } from './binding-test.ts'
import { Refusal, type Stream } from './callers/caller.ts'
import { fieldsOf } from './fields-of.ts'
import { ObservedTask } from './observed-task.ts'
import { Unanswered } from './unanswered.ts'

/** A stream and the trial that it is part of. */
export interface ListeningOptions {
  readonly trial: BindingTest
  readonly stream: Stream
  readonly method: OperationMethod
  readonly cut: AbortController
  /** The requirements that are not met when the stream breaks. */
  readonly ids: readonly number[]
  readonly sent: string
}

/** How reading a stream came to an end: the stream ended; nothing came for a while; what was waited for was there; it never ends. */
export type Rest = 'ended' | 'silent' | 'there' | 'endless'

/** More events than a test's task has. */
const MOST_EVENTS = 2000

/** Reads a stream, and keeps whether its task goes the course that tasks go. */
export class Listening {
  readonly events: StreamResponse[] = []
  readonly course = new ObservedTask()
  refusal: Refusal | undefined
  readonly #options: ListeningOptions
  #pending: Promise<StreamResponse | undefined> | undefined

  constructor(options: ListeningOptions) {
    this.#options = options
  }

  /** The next event; `undefined` at the end, after a refusal, and where it breaks, which is kept. */
  async next(): Promise<StreamResponse | undefined> {
    const rest = await this.read(() => true)
    if (rest !== 'silent') return rest === 'there' ? this.events.at(-1) : undefined
    const { trial, ids } = this.#options
    for (const id of ids) trial.check(id, false, 'an event, or an end', `nothing within ${trial.options.bounds.answerMs / 1000} seconds`)
    this.leave()
    throw new Unanswered('the stream is silent')
  }

  /** Reads on until something holds after an event. */
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
      // The stream outlives the wait for its next event.
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

/** The state that an event tells. Anything may be in it. */
export function stateIn(event: object): TaskState | 'reply' | undefined {
  if ('message' in event) return 'reply'
  const { task, statusUpdate } = fieldsOf(event)
  const { state } = fieldsOf(fieldsOf(task ?? statusUpdate).status)
  return isState(state) ? state : undefined
}

function isState(state: unknown): state is TaskState {
  return typeof state === 'string' && Object.hasOwn(TASK_STATES, state)
}
