import type { RequestId } from '../json-rpc/envelope.ts'
import { resultFrame, resultPieces } from '../json-rpc/frames.ts'
import type { Outbox } from './outbox.ts'

/** What a tap sees of a result that is sent in pieces. */
const LARGE_RESULT = '"(large, sent in pieces)"'

/** The large answers of one connection: they are read and sent one after the other, as fast as the client reads. */
export class LargeAnswers {
  readonly outbox: Outbox
  #last = Promise.resolve()

  constructor(outbox: Outbox) {
    this.outbox = outbox
  }

  /** Resolves when all earlier answers are sent. Call the result when this one is. */
  enter(): Promise<() => void> {
    const before = this.#last
    return new Promise(enter => {
      this.#last = new Promise(leave => void before.then(() => enter(leave)))
    })
  }
}

/** The answer to one call, or the first event of its stream, in case that it is large. */
export class LargeAnswer {
  readonly #answers: LargeAnswers
  readonly #id: RequestId
  readonly #activated: readonly string[]
  readonly #signal: AbortSignal
  #leave: (() => void) | undefined

  constructor(answers: LargeAnswers, id: RequestId, activated: readonly string[], signal: AbortSignal) {
    this.#answers = answers
    this.#id = id
    this.#activated = activated
    this.#signal = signal
  }

  /** Waits until it may be read. Throws if its client has left or canceled the stream: then nothing is read. */
  readonly room = async (): Promise<void> => {
    this.#leave ??= await this.#answers.enter()
    await this.#drained()
    this.#signal.throwIfAborted()
  }

  /** Sends a large answer in pieces; then the next one may be read. `undefined`, and nothing is sent, if the answer is not large. */
  send(result: unknown): Promise<void> | undefined {
    return this.#leave && this.#send(result)
  }

  /** Lets the next one be read, in any case. */
  end(): void {
    this.#leave?.()
    this.#leave = undefined
  }

  async #send(result: unknown): Promise<void> {
    await this.#drained()
    await this.#answers.outbox.sendPieces(resultPieces(this.#id, result, this.#activated), resultFrame(this.#id, LARGE_RESULT, this.#activated))
    this.end()
  }

  async #drained(): Promise<void> {
    const { outbox } = this.#answers
    while (outbox.drained) await outbox.drained
  }
}
