/** As it is when this is loaded: one that a test replaces for a while would leave those waiting who came meanwhile, and all after them. */
const { setImmediate } = globalThis

/** Who is called back, in so many turns at the latest. */
interface Waiting {
  turns: number
  readonly callback: () => void
}

let waiting: Waiting[] = []

/** Whether somebody came in this turn. */
let isBusy = false

/**
 * Calls back once this turn of the event loop has done what came in with it, together with all others that wait for that.
 * What is sent then leaves in one go: a client that gets its answers one by one is woken up for each of them, which costs
 * the server more than the sending does. None of the callbacks may throw.
 */
export function afterThisTick(callback: () => void): void {
  afterTurns(1, callback)
}

/**
 * The same after so many turns, 1 being the end of this one, or after the first in which nobody came: a server that has little
 * to do lets nobody wait for long.
 */
export function afterTurns(turns: number, callback: () => void): void {
  isBusy = true
  if (waiting.push({ turns, callback }) === 1) setImmediate(endTurn)
}

/** Resolves when {@link afterThisTick} would call back. */
export function turnEnd(): Promise<void> {
  return new Promise(afterThisTick)
}

function endTurn(): void {
  for (const one of waiting) one.turns = isBusy ? one.turns - 1 : 0
  const due = waiting.filter(({ turns }) => turns === 0)
  waiting = waiting.filter(({ turns }) => turns > 0)
  isBusy = false
  if (waiting.length > 0) setImmediate(endTurn)
  for (const { callback } of due) callback()
}

/**
 * Makes something of an object once for all who ask in the same turn of the event loop, as the subscribers of one event
 * do, and keeps nothing longer than that.
 */
export function memoizePerTick<Key extends object, Value>(make: (key: Key) => Value): (key: Key) => Value {
  let made = new Map<Key, Value>()
  return key => {
    if (made.size === 0) afterThisTick(() => void (made = new Map()))
    const known = made.get(key)
    if (known !== undefined) return known
    const value = make(key)
    made.set(key, value)
    return value
  }
}

/** Lets the process end while a timer is set, if it is one that would hold it. Gives the timer. */
export function unrefTimer(timer: unknown): unknown {
  if (typeof timer === 'object' && timer !== null && 'unref' in timer && typeof timer.unref === 'function') timer.unref()
  return timer
}
