/** An unexpected result on a path: the step, and the expected and actual values. */
export class PathError extends Error {
  override readonly name = 'PathError'
  readonly step: string
  readonly wanted: unknown
  readonly found: unknown

  constructor(step: string, what: string, wanted: unknown, found: unknown) {
    super(`${step}: ${what}`)
    this.step = step
    this.wanted = wanted
    this.found = found
  }
}
