import { isA2AError, type ErrorCode } from '../../machines/protocol/errors.ts'
import { TaskSchema, type Task } from '../../machines/protocol/objects.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import type { Carrier, Hearer } from './carrier.ts'
import { ConnectionLost } from './connection-lost.ts'
import { StreamRequest, validAnswer, type ClientRequest, type RequestFrame } from './requests.ts'
import type { Way } from './way.ts'

/** Errors of an agent that is there and not ready: for what was lost they are as good as no answer. */
const NOT_READY: readonly ErrorCode[] = ['Overloaded', 'RateLimited']

/** One try to carry a request to its end. */
export class Attempt implements Hearer {
  readonly #request: ClientRequest
  readonly #frame: RequestFrame
  readonly #carrier: Carrier
  readonly #way: Way
  #isAnswered = false
  #isCut = false
  #results = 0
  #isEnded = false

  /** `frame` is what is sent for the request this time. */
  constructor(request: ClientRequest, frame: RequestFrame, carrier: Carrier, way: Way) {
    this.#request = request
    this.#frame = frame
    this.#carrier = carrier
    this.#way = way
  }

  /** Whether it was not in vain: events came that were not known before, or the agent kept it open until it was cut off. */
  get broughtNews(): boolean {
    return (this.#isAnswered && this.#isCut) || this.#results > (beginsWithTask(this.#frame) ? 1 : 0)
  }

  /**
   * Carries the request. Resolves with how it was lost, for the next attempt; else the request has its end, or `stop`
   * aborted. `isAgain`: the request was lost before.
   */
  async make(isAgain: boolean, stop: AbortSignal): Promise<ConnectionLost | undefined> {
    try {
      await this.#carrier.carry(this.#frame, this, stop)
    } catch (error) {
      return stop.aborted ? undefined : this.#fail(error, isAgain, stop)
    }
    if (!this.#isEnded && !this.#request.mayEnd && !(await this.#hadEnded(stop))) return new ConnectionLost('the agent ended the stream, and not the task')
    this.#request.ended()
    return undefined
  }

  answered(extensions?: string | null): void {
    this.#isAnswered = true
    this.#way.answered(extensions)
  }

  result(value: unknown): void {
    this.#results += 1
    this.#request.result(value)
  }

  ended(): void {
    this.#isEnded = true
  }

  async #fail(error: unknown, isAgain: boolean, stop: AbortSignal): Promise<ConnectionLost | undefined> {
    if (error instanceof ConnectionLost) {
      this.#isCut = true
      return error
    }
    if (isA2AError(error) && NOT_READY.includes(error.code) && (isAgain || this.#results > 0)) {
      return new ConnectionLost(error.message, { isUnsent: this.#results === 0, cause: error })
    }
    if (isA2AError(error)) this.#way.answered()
    await this.#endAsItIs(error, stop)
    return undefined
  }

  /** A task that ended while nobody heard takes no subscription: then the task itself is the rest of the stream. */
  async #endAsItIs(error: unknown, stop: AbortSignal): Promise<void> {
    const isResumed = this.#frame.method === 'SubscribeToTask' && this.#frame !== this.#request.frame
    const task = isResumed && isA2AError(error) && error.code === 'UnsupportedOperation' ? await this.#task(stop) : undefined
    if (!task || !isTerminal(task.status.state)) return this.#request.failed(error)
    this.#request.result({ task })
    this.#request.ended()
  }

  /** A subscription with a cursor may have nothing to tell: only the task itself says whether that was all. */
  async #hadEnded(stop: AbortSignal): Promise<boolean> {
    if (this.#frame.method !== 'SubscribeToTask' || !(this.#request instanceof StreamRequest) || this.#request.knowsState) return false
    const task = await this.#task(stop)
    return task !== undefined && isTerminal(task.status.state)
  }

  /** The task that the frame subscribes to; `undefined` if it cannot be had. */
  async #task(stop: AbortSignal): Promise<Task | undefined> {
    let answer: unknown
    const hearer = { answered: () => {}, result: (value: unknown) => (answer = value), ended: () => {} }
    try {
      await this.#carrier.carry({ method: 'GetTask', params: this.#frame.params, trace: this.#frame.trace }, hearer, stop)
      return validAnswer(TaskSchema, answer)
    } catch {
      return undefined
    }
  }
}

/** A subscription without a cursor begins with the task as it is, which may be known. */
function beginsWithTask({ method, parameters = {} }: RequestFrame): boolean {
  return method === 'SubscribeToTask' && parameters['taskchart-after-generation'] === undefined
}
