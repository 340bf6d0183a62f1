/** Ends a move: there was no answer that A2A knows, and that is noted. */
export class Unanswered extends Error {}

/** Ends the test of a binding: it came to its bounds. */
export class BoundReached extends Error {}

/** Goes on after a bound was reached: which, is noted already. */
export function ignoreBound(error: unknown): void {
  if (!(error instanceof BoundReached)) throw error
}

/** Goes on after a move that had no answer: that is noted already. */
export function ignoreUnanswered(error: unknown): void {
  if (!(error instanceof Unanswered)) throw error
}
