/** Fractional part of the golden ratio: its multiples modulo 1 are evenly spread (a low-discrepancy sequence). */
const STEP = (Math.sqrt(5) - 1) / 2

/**
 * Jitter: gives times from 0.5 to 1.5 times `aroundMs`, each far from the ones before, so that callers that are delayed together do not
 * return together.
 */
export function jitter(aroundMs: number): () => number {
  let at = 0
  return () => {
    at = (at + STEP) % 1
    return aroundMs * (0.5 + at)
  }
}
