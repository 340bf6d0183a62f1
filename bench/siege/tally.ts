/** The counts of one attack. */
export interface Told {
  readonly attack: string
  readonly times: number
  readonly bytes: number
  /** How often each code was answered: HTTP statuses and JSON-RPC errors. */
  readonly codes: Readonly<Record<string, number>>
  /** Excerpts of answers that show a defect: internal errors. */
  readonly defects: readonly string[]
}

const CODE = /HTTP\/1\.1 (\d{3})|"code":(-\d{5})/g
const TASK = /"task":\{"id":"([^"]{1,128})"/g
const DEFECTS: ReadonlySet<string> = new Set(['500', '-32603'])
const MOST_DEFECTS = 3

/** Counts what an attack sends and hears, and keeps the ids of the tasks that it hears of. */
export class Tally {
  readonly #attack: string
  readonly #found: (taskId: string) => void
  readonly #codes: Record<string, number> = {}
  readonly #defects: string[] = []
  #times = 0
  #bytes = 0

  constructor(attack: string, found: (taskId: string) => void) {
    this.#attack = attack
    this.#found = found
  }

  began(): void {
    this.#times += 1
  }

  sent(bytes: number): void {
    this.#bytes += bytes
  }

  take(data: Buffer): void {
    const text = data.toString('latin1')
    for (const { 1: status, 2: error = '', index } of text.matchAll(CODE)) {
      const code = status ?? error
      this.#codes[code] = (this.#codes[code] ?? 0) + 1
      if (DEFECTS.has(code) && this.#defects.length < MOST_DEFECTS)
        this.#defects.push(text.slice(Math.max(0, index - 100), index + 300))
    }
    for (const [, id = ''] of text.matchAll(TASK)) this.#found(id)
  }

  told(): Told {
    return { attack: this.#attack, times: this.#times, bytes: this.#bytes, codes: this.#codes, defects: this.#defects }
  }
}
