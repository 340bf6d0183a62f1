/** Lets the process end while a timer is set, if it is one that would hold it. Gives the timer. */
export function unheld(timer: unknown): unknown {
  if (typeof timer === 'object' && timer !== null && 'unref' in timer && typeof timer.unref === 'function') timer.unref()
  return timer
}
