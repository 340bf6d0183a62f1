/** How much a test may ask of a server, on one binding. */
export interface Bounds {
  /** How long an answer may take, and a stream be silent. */
  readonly answerMs: number
  readonly requests: number
  readonly tasks: number
  /** How long it all may take. */
  readonly totalMs: number
}
