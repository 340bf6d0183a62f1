/** The promise, which may be left alone: if nobody waits for it, its error is nobody's. */
export function unheard<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}
