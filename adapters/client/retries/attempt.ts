import { isA2AError } from '../../../machines/protocol/errors.ts'
import { TaskSchema, type Task } from '../../../machines/protocol/objects.ts'
import { isTerminal } from '../../../machines/protocol/states.ts'
import { StreamRequest, validAnswer, type ClientRequest, type RequestFrame } from '../requests.ts'
import type { AgentTransport, ResponseSink } from '../transports/transport.ts'
import { ConnectionLost, inDoubt, mayPass } from './lost-errors.ts'
import type { TransportState } from './transport-state.ts'

/** Facts about the earlier attempts. */
export interface Before {
  /** There was an earlier attempt. */
  readonly isAgain: boolean
  /** An earlier attempt lost its connection, and may have reached the agent. */
  readonly wasCut: boolean
}

/** One attempt to complete a request. */
export class Attempt implements ResponseSink {
  readonly #request: ClientRequest
  readonly #frame: RequestFrame
  readonly #carrier: AgentTransport
  readonly #way: TransportState
  #isAnswered = false
  #isCut = false
  #results = 0
  #isEnded = false

  /** `frame` is sent for the request in this attempt. */
  constructor(request: ClientRequest, frame: RequestFrame, carrier: AgentTransport, way: TransportState) {
    this.#request = request
    this.#frame = frame
    this.#carrier = carrier
    this.#way = way
  }

  /** Whether the attempt made progress: it received new events, or the agent kept it open until the connection was lost. */
  get broughtNews(): boolean {
    return (this.#isAnswered && this.#isCut) || this.#results > (beginsWithTask(this.#frame) ? 1 : 0)
  }

  /** Sends the request. Resolves with an error if the connection was lost; otherwise the request has ended, or `stop` aborted. */
  async make(before: Before, stop: AbortSignal): Promise<ConnectionLost | undefined> {
    try {
      await this.#carrier.carry(this.#frame, this, stop)
    } catch (error) {
      return stop.aborted ? undefined : this.#fail(error, before)
    }
    if (!this.#isEnded && !this.#request.mayEnd && !(await this.#hadEnded(stop)))
      return new ConnectionLost('the agent ended the stream before the task')
    this.#request.ended()
    return undefined
  }

  answered(extensions?: string | null): void {
    this.#isAnswered = true
    this.#way.answered(extensions)
  }

  result(value: unknown): void {
    if (this.#request.result(value)) this.#results += 1
  }

  ended(): void {
    this.#isEnded = true
  }

  #fail(error: unknown, { isAgain, wasCut }: Before): ConnectionLost | undefined {
    if (error instanceof ConnectionLost) {
      this.#isCut = true
      return error
    }
    // For a request that was already lost, these errors are temporary too.
    if (mayPass(error) && (isAgain || this.#results > 0)) {
      return new ConnectionLost(error.message, { isUnsent: this.#results === 0, cause: error })
    }
    if (isA2AError(error)) this.#way.answered()
    this.#request.failed(wasCut && this.#request.isOpenQuestion ? inDoubt(error, this.#frame.method) : error)
    return undefined
  }

  /** A subscription with a cursor may have no events left. Only the task shows whether it has ended. */
  async #hadEnded(stop: AbortSignal): Promise<boolean> {
    if (
      this.#frame.method !== 'SubscribeToTask' ||
      !(this.#request instanceof StreamRequest) ||
      this.#request.knowsState
    )
      return false
    const task = await this.#task(stop)
    return task !== undefined && isTerminal(task.status.state)
  }

  /** Reads the task of the subscription; `undefined` if that fails. */
  async #task(stop: AbortSignal): Promise<Task | undefined> {
    let answer: unknown
    const hearer = { answered: () => {}, result: (value: unknown) => (answer = value), ended: () => {} }
    try {
      await this.#carrier.carry(
        { method: 'GetTask', params: this.#frame.params, trace: this.#frame.trace },
        hearer,
        stop
      )
      return validAnswer(TaskSchema, answer, this.#way.url)
    } catch {
      return undefined
    }
  }
}

/** A subscription without a cursor begins with the current task, which may not be new. */
function beginsWithTask({ method, parameters = {} }: RequestFrame): boolean {
  return method === 'SubscribeToTask' && parameters['taskchart-after-generation'] === undefined
}
