/** A node that has not looked for so long, in milliseconds, knows nothing about the signs of life of others. */
const BLIND_MS = 500

/** A session of a node, with its newest sign of life. Without an address, its node has joined again with another session. */
export interface Sign {
  readonly pid: number
  readonly address: string | undefined
  readonly beats: string
}

/** Finds the nodes that are hung: their sessions are there, but give no sign of life. */
export class SignsOfLife {
  readonly #leaseMs: number
  readonly #seen = new Map<number, { readonly sign: string; readonly atMs: number }>()
  #lookedAtMs = -Infinity

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs
  }

  /** The sessions without a new sign of life for the lease, while this process looked all the time: its own pauses are nobody else's fault. */
  lateOf(signs: readonly Sign[], nowMs: number): number[] {
    if (nowMs - this.#lookedAtMs > BLIND_MS) this.#seen.clear()
    this.#lookedAtMs = nowMs
    for (const pid of this.#seen.keys()) if (!signs.some(sign => sign.pid === pid)) this.#seen.delete(pid)
    return signs.flatMap(({ pid, address, beats }) => {
      const sign = address === undefined ? '' : `${address} ${beats}`
      const seen = this.#seen.get(pid)
      if (seen?.sign === sign) return nowMs - seen.atMs >= this.#leaseMs ? [pid] : []
      this.#seen.set(pid, { sign, atMs: nowMs })
      return []
    })
  }
}
