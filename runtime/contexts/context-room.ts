import { A2AError } from '../../machines/protocol/errors.ts'
import type { Limits } from '../access/limits.ts'
import { overShare, Shares, type Lacking, type Sharer, type Use } from '../access/shares.ts'
import { liveBytes } from '../access/unfinished-bytes.ts'

const ADVICE = 'Wait for a task to end, or cancel one.'

const CONTEXTS: Use = { limit: 'liveContexts', what: 'conversations that are under way', advice: ADVICE }
const BYTES: Use = { limit: 'liveBytes', what: 'bytes of conversations in memory', advice: ADVICE }

/** Has a context at rest leave memory: one of the sharer's, or any if the whole is full. Answers whether there was one. */
export type Dismiss = (lacking: Lacking, sharer: Sharer) => boolean

/** The room for contexts in memory, by one resource that they use. */
export class ContextRoom {
  readonly shares: Shares
  readonly #use: Use
  readonly #full: string
  readonly #dismiss: Dismiss

  private constructor(shares: Shares, use: Use, full: string, dismiss: Dismiss) {
    this.shares = shares
    this.#use = use
    this.#full = full
    this.#dismiss = dismiss
  }

  /** The room by `limits.liveContexts`. */
  static forContexts(limits: Limits, dismiss: Dismiss): ContextRoom {
    return new ContextRoom(new Shares(limits.liveContexts, limits), CONTEXTS, 'The agent has as many conversations under way as it takes. Send the request again later.', dismiss)
  }

  /** The room by `limits.liveBytes`. */
  static forBytes(limits: Limits, dismiss: Dismiss): ContextRoom {
    return new ContextRoom(liveBytes(limits), BYTES, 'The agent has as many bytes of conversations in memory as it takes. Send the request again later.', dismiss)
  }

  /** Makes room for so much more. Throws RateLimited, or Overloaded if the whole is full, if no context at rest can leave memory for it. */
  make(sharer: Sharer, amount = 1): void {
    const { shares } = this
    for (let lacking = shares.lacking(sharer, amount); lacking; lacking = shares.lacking(sharer, amount)) {
      if (this.#dismiss(lacking, sharer)) continue
      throw lacking === 'whole' ? new A2AError('Overloaded', this.#full, { retryAfterMs: 1000 }) : overShare(this.#use, lacking, sharer, shares)
    }
  }
}
