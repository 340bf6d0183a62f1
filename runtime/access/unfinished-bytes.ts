import { A2AError } from '../../machines/protocol/errors.ts'
import type { Limits } from './limits.ts'
import { overShare, Shares, type Sharer } from './shares.ts'

/** Messages up to this size are not counted, because their number is limited elsewhere. */
export const UNCOUNTED_BYTES = 16 * 1024

const UNFINISHED = {
  limit: 'unfinishedBytes',
  what: 'bytes of unfinished messages',
  advice: 'Send one message after the other.'
} as const

/** Counter of the bytes of contexts in memory. */
export function liveBytes(limits: Limits): Shares {
  return new Shares(wholeFor(limits.liveBytes, limits), limits)
}

/** Counter of the bytes of incomplete messages. */
export function unfinishedBytes(limits: Limits): Shares {
  return new Shares(wholeFor(limits.unfinishedBytes, limits), limits)
}

/** This limit, raised if needed so that one message fits in each share. */
function wholeFor(bytes: number, { messageBytes, principalShare, tenantShare }: Limits): number {
  return Math.max(bytes, messageBytes / Math.min(principalShare, tenantShare))
}

/** Counter of the bytes of one incomplete message. */
export class Unfinished {
  readonly #shares: Shares
  readonly #sharer: Sharer
  #counted = 0

  constructor(shares: Shares, sharer: Sharer) {
    this.#shares = shares
    this.#sharer = sharer
  }

  /** Sets the number of received bytes; 0 once the message is complete or given up. Gives an error if they do not fit. */
  count(bytes: number): A2AError | undefined {
    const counted = bytes > UNCOUNTED_BYTES ? bytes : 0
    const more = counted - this.#counted
    if (more === 0) return undefined
    const lacking = more > 0 ? this.#shares.lacking(this.#sharer, more) : undefined
    if (lacking === 'whole')
      return new A2AError('Overloaded', 'The agent has too many unfinished messages. Send it again later.', {
        retryAfterMs: 1000
      })
    if (lacking) return overShare(UNFINISHED, lacking, this.#sharer, this.#shares)
    this.#counted = counted
    this.#shares.add(this.#sharer, more)
    return undefined
  }
}
