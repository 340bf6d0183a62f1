/** The golden ratio's fraction: steps of it come nowhere near each other for long. */
const STEP = (Math.sqrt(5) - 1) / 2

/**
 * Gives a time around another, from half of it to one and a half, each far from those that it gave before: so that who is
 * made to wait at the same time does not come back at the same time.
 */
export function jitter(aroundMs: number): () => number {
  let at = 0
  return () => {
    at = (at + STEP) % 1
    return aroundMs * (0.5 + at)
  }
}
