import { A2AError } from '../../machines/protocol/errors.ts'
import type { Limits } from '../access/limits.ts'
import { overShare, Shares, type Lacking, type Sharer, type Use } from '../access/shares.ts'
import { liveBytes } from '../access/unfinished-bytes.ts'

const ADVICE = 'Wait for a task to end, or cancel one.'

const CONTEXTS: Use = { limit: 'liveContexts', what: 'active contexts', advice: ADVICE }
const BYTES: Use = { limit: 'liveBytes', what: 'bytes of contexts in memory', advice: ADVICE }

/** Removes an idle context from memory: one of the sharer's, or any if the whole limit is reached. Gives whether there was one. */
export type Dismiss = (lacking: Lacking, sharer: Sharer) => boolean

/** Limit of one resource of contexts in memory, with shares. */
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

  /** Limits contexts by `limits.liveContexts`. */
  static forContexts(limits: Limits, dismiss: Dismiss): ContextRoom {
    return new ContextRoom(
      new Shares(limits.liveContexts, limits),
      CONTEXTS,
      'The agent has too many active contexts. Send the request again later.',
      dismiss
    )
  }

  /** Limits bytes by `limits.liveBytes`. */
  static forBytes(limits: Limits, dismiss: Dismiss): ContextRoom {
    return new ContextRoom(
      liveBytes(limits),
      BYTES,
      'The agent has too many bytes of contexts in memory. Send the request again later.',
      dismiss
    )
  }

  /** Removes idle contexts until `amount` more fits. If that is not enough, throws RateLimited for a share, Overloaded for the whole limit. */
  make(sharer: Sharer, amount = 1): void {
    const { shares } = this
    for (let lacking = shares.lacking(sharer, amount); lacking; lacking = shares.lacking(sharer, amount)) {
      if (this.#dismiss(lacking, sharer)) continue
      throw lacking === 'whole'
        ? new A2AError('Overloaded', this.#full, { retryAfterMs: 1000 })
        : overShare(this.#use, lacking, sharer, shares)
    }
  }
}
