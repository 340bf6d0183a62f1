import type { Budget } from '../../runtime/access/call-context.ts'
import { AnswerBudget, AnswerSpace, type Owner, SharedLimit } from '../../runtime/access/shares.ts'
import { type RequestId, resultFrame, resultPieces } from '../json-rpc/dispatch.ts'
import type { Outbox } from './outbox.ts'

/** The limit on large answers in memory for one connection, in bytes. A single answer may be larger. */
const CONNECTION_BYTES = 4 * 1024 * 1024

/** The placeholder in a tap for a result that is sent in pieces. */
const LARGE_RESULT = '"(large, sent in pieces)"'

/** The large answers of one connection: loaded as fast as its client reads, and sent one at a time. */
export class LargeAnswers {
  readonly outbox: Outbox
  readonly #all: AnswerBudget
  readonly #owner: Owner
  /** Made for the first large answer. */
  #own: AnswerBudget | undefined

  /** `all` is the limit of all connections; this one uses the share of `owner`. */
  constructor(outbox: Outbox, all: AnswerBudget, owner: Owner) {
    this.outbox = outbox
    this.#all = all
    this.#owner = owner
  }

  space(): AnswerSpace {
    const own = (this.#own ??= new AnswerBudget(
      new SharedLimit(CONNECTION_BYTES, { principalShare: 1, tenantShare: 1 })
    ))
    return new AnswerSpace(
      bytes => own.enter({}, bytes),
      bytes => this.#all.enter(this.#owner, bytes)
    )
  }
}

/** The answer to one call, or the first event of its stream, which may be large. */
export class LargeAnswer {
  readonly #outbox: Outbox
  readonly #space: AnswerSpace
  readonly #id: RequestId
  readonly #activated: readonly string[]
  readonly #signal: AbortSignal

  constructor(answers: LargeAnswers, id: RequestId, activated: readonly string[], signal: AbortSignal) {
    this.#outbox = answers.outbox
    this.#space = answers.space()
    this.#id = id
    this.#activated = activated
    this.#signal = signal
  }

  /**
   * Waits for memory to load the answer. Throws if its client has disconnected or canceled the stream: then nothing is
   * loaded.
   */
  readonly reserve: Budget = async bytes => {
    await this.#space.take(bytes)
    while (this.#outbox.drained) await this.#outbox.drained
    this.#signal.throwIfAborted()
  }

  /** Sends the answer in pieces, after the one being sent. */
  async send(result: unknown): Promise<void> {
    while (this.#outbox.drained) await this.#outbox.drained
    await this.#outbox.sendPieces(
      this.#space.sent(resultPieces(this.#id, result, this.#activated)),
      resultFrame(this.#id, LARGE_RESULT, this.#activated)
    )
  }

  /** Releases the memory, in any case. */
  end(): void {
    this.#space.end()
  }
}
