/** The bounds of a test on one binding. */
export interface Bounds {
  /** The time limit of an answer, and of silence on a stream. */
  readonly answerMs: number
  readonly requests: number
  readonly tasks: number
  /** The time limit of the whole test. */
  readonly totalMs: number
}

/** Ends a move: there was no valid answer, which is recorded. */
export class Unanswered extends Error {}

/** Ends the test of a binding: it reached a bound. */
export class BoundReached extends Error {}

/** Ignores a reached bound, which is recorded. */
export function ignoreBound(error: unknown): void {
  if (!(error instanceof BoundReached)) throw error
}

/** Ignores a move without an answer, which is recorded. */
export function ignoreUnanswered(error: unknown): void {
  if (!(error instanceof Unanswered)) throw error
}
