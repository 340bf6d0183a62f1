import { isA2AError } from '../../../machines/protocol/errors.ts'
import { ANSWER_SCHEMAS, type Task } from '../../../machines/protocol/objects.ts'
import { isTerminal } from '../../../machines/protocol/states.ts'
import type { Clock } from '../../../runtime/ports/clock.ts'
import { type ClientRequest, lastingParameters, type RequestFrame, StreamRequest, validAnswer } from '../requests.ts'
import type { AgentTransport, ResponseReceiver } from '../transports/http.ts'
import { ConnectionLost, cutOff, inDoubt, mayPass, nobodyAnswers, wasLost } from './lost-errors.ts'
import { BackOff, type BackOffOptions, type TransportState } from './transport-state.ts'

export interface RetryContext {
  readonly transport: AgentTransport
  readonly state: TransportState
  readonly backOff: BackOffOptions
}

/**
 * Sends a request until it completes. After a lost connection it waits, and resumes the request with the frame from
 * `again`. It fails with the last error after the time limit, or if the request cannot be sent again; the error states
 * if the outcome is unknown. It ends silently when `stop` aborts.
 */
export async function sendWithRetries(
  request: ClientRequest,
  { transport, state, backOff }: RetryContext,
  stop: AbortSignal
): Promise<void> {
  const waits = new BackOff(backOff)
  let frame = request.frame
  let wasCut = false
  for (let tries = 0; !stop.aborted; tries += 1) {
    if (tries > 0) state.tried()
    const attempt = new Attempt(request, frame, transport, state)
    const lost = await attempt.run({ isAgain: tries > 0, wasCut }, stop)
    if (!lost || stop.aborted) return
    const answer = isA2AError(lost.cause) ? lost.cause : undefined
    if (lost.isUnsent && !state.hasAnswered && !answer) return request.failed(nobodyAnswers(state.url, lost))
    const again = lost.isUnsent ? frame : request.again(state.isReliable)
    if (!again) return request.failed(cutOff(state.url, frame.method, lost))
    frame = again
    wasCut ||= !lost.isUnsent
    if (attempt.broughtNews) waits.reset()
    state.lost()
    const waitMs = waits.next(answer?.retryAfterMs)
    if (waitMs === undefined) {
      const error = answer ?? wasLost(state.url, lost.message)
      return request.failed(wasCut && request.isOpenQuestion ? inDoubt(error, frame.method) : error)
    }
    await delay(waitMs, backOff.clock, stop)
  }
}

/** Resolves after a time, or at once when the signal aborts. */
export function delay(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const timer = clock.setTimeout(over, ms)
    signal.addEventListener('abort', over)
    function over() {
      clock.clearTimeout(timer)
      signal.removeEventListener('abort', over)
      resolve()
    }
  })
}

/** Facts about the earlier attempts. */
interface Before {
  /** There was an earlier attempt. */
  readonly isAgain: boolean
  /** An earlier attempt lost its connection, and may have reached the agent. */
  readonly wasCut: boolean
}

/** One attempt to complete a request. */
class Attempt implements ResponseReceiver {
  readonly #request: ClientRequest
  readonly #frame: RequestFrame
  readonly #transport: AgentTransport
  readonly #state: TransportState
  #isAnswered = false
  #isCut = false
  #results = 0
  #isEnded = false

  /** `frame` is sent for the request in this attempt. */
  constructor(request: ClientRequest, frame: RequestFrame, transport: AgentTransport, state: TransportState) {
    this.#request = request
    this.#frame = frame
    this.#transport = transport
    this.#state = state
  }

  /**
   * Whether the attempt made progress: it received new events, or the agent kept it open until the connection was lost.
   */
  get broughtNews(): boolean {
    return (this.#isAnswered && this.#isCut) || this.#results > (beginsWithTask(this.#frame) ? 1 : 0)
  }

  /**
   * Sends the request. Resolves with an error if the connection was lost; otherwise the request has ended, or `stop`
   * aborted.
   */
  async run(before: Before, stop: AbortSignal): Promise<ConnectionLost | undefined> {
    try {
      await this.#transport.send(this.#frame, this, stop)
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
    this.#state.answered(extensions)
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
    if (isA2AError(error)) this.#state.answered()
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
    const receiver = { answered: () => {}, result: (value: unknown) => (answer = value), ended: () => {} }
    try {
      await this.#transport.send(
        {
          method: 'GetTask',
          params: this.#frame.params,
          parameters: lastingParameters(this.#frame),
          trace: this.#frame.trace
        },
        receiver,
        stop
      )
      return validAnswer(ANSWER_SCHEMAS[this.#state.generations.version].task, answer, this.#state.url)
    } catch {
      return undefined
    }
  }
}

/** A subscription without a cursor begins with the current task, which may not be new. */
function beginsWithTask({ method, parameters = {} }: RequestFrame): boolean {
  return method === 'SubscribeToTask' && parameters['taskchart-after-generation'] === undefined
}
