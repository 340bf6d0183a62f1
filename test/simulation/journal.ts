import { createHash } from 'node:crypto'

/** What happened in a world, line by line: the same seed gives the same bytes. */
export class Journal {
  readonly #hash = createHash('sha256')
  readonly #print: ((line: string) => void) | undefined
  readonly #now: () => number

  /** `print` hears of each line; `now` gives the milliseconds since the beginning. */
  constructor(now: () => number, print?: (line: string) => void) {
    this.#now = now
    this.#print = print
  }

  note(line: string): void {
    const whole = `${String(this.#now()).padStart(7)} ${line}`
    this.#hash.update(whole).update('\n')
    this.#print?.(whole)
  }

  /** The digest of all lines until now. */
  get digest(): string {
    return this.#hash.copy().digest('hex')
  }
}
