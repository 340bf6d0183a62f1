import { A2AError } from '../../machines/protocol/errors.ts'
import type { Limits } from './limits.ts'
import { overShare, Shares, type Sharer } from './shares.ts'

/** Messages of up to so many bytes are not counted: their number is bounded. */
export const UNCOUNTED_BYTES = 16 * 1024

const UNFINISHED = { limit: 'unfinishedBytes', what: 'bytes of unfinished messages under way', advice: 'Send one after the other.' } as const

/** The bytes that contexts in memory keep. */
export function liveBytes(limits: Limits): Shares {
  return new Shares(wholeFor(limits.liveBytes, limits), limits)
}

/** The bytes of messages that have begun to come and are not complete. */
export function unfinishedBytes(limits: Limits): Shares {
  return new Shares(wholeFor(limits.unfinishedBytes, limits), limits)
}

/** So many bytes, or more: a message fits in each share. */
function wholeFor(bytes: number, { messageBytes, principalShare, tenantShare }: Limits): number {
  return Math.max(bytes, messageBytes / Math.min(principalShare, tenantShare))
}

/** The bytes of one message that is not complete. */
export class Unfinished {
  readonly #shares: Shares
  readonly #sharer: Sharer
  #counted = 0

  constructor(shares: Shares, sharer: Sharer) {
    this.#shares = shares
    this.#sharer = sharer
  }

  /** Counts that so many bytes have come; none once the message is complete or given up. Gives the error if there is no room for them. */
  count(bytes: number): A2AError | undefined {
    const counted = bytes > UNCOUNTED_BYTES ? bytes : 0
    const more = counted - this.#counted
    if (more === 0) return undefined
    const lacking = more > 0 ? this.#shares.lacking(this.#sharer, more) : undefined
    if (lacking === 'whole') return new A2AError('Overloaded', 'The agent has as many unfinished messages under way as it takes. Send it again later.', { retryAfterMs: 1000 })
    if (lacking) return overShare(UNFINISHED, lacking, this.#sharer, this.#shares)
    this.#counted = counted
    this.#shares.add(this.#sharer, more)
    return undefined
  }
}
