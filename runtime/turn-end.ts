/** As it is when this is loaded: one that a test replaces for a while would leave those waiting who came meanwhile, and all after them. */
const { setImmediate } = globalThis

let waiting: (() => void)[] = []

/**
 * Calls back once this turn of the event loop has done what came in with it, together with all others that wait for that.
 * What is sent then leaves in one go: a client that gets its answers one by one is woken up for each of them, which costs
 * the server more than the sending does. None of the callbacks may throw.
 */
export function atTurnEnd(callback: () => void): void {
  if (waiting.push(callback) > 1) return
  setImmediate(() => {
    const due = waiting
    waiting = []
    for (const each of due) each()
  })
}

/** The same after so many turns: 1 is the end of this one. A server with nothing to do takes its turns in microseconds. */
export function afterTurns(turns: number, callback: () => void): void {
  atTurnEnd(turns === 1 ? callback : () => afterTurns(turns - 1, callback))
}

/** Resolves when {@link atTurnEnd} would call back. */
export function turnEnd(): Promise<void> {
  return new Promise(atTurnEnd)
}
