import type { Clock } from '../../../runtime/ports/clock.ts'
import type { Output } from '../command.ts'
import { cutToWidth } from './cut-to-width.ts'
import type { Reporter } from './reporter.ts'
import type { Terminal } from './terminal.ts'

/** What a live line is made of. */
export interface LiveLineOptions {
  readonly output: Output
  readonly terminal: Terminal
  readonly clock: Clock
  /** What the line says now. Without line breaks or control characters. */
  readonly text: (elapsedMs: number) => string
}

/** The line is drawn as often, if it has changed: however fast events come, a terminal keeps up. */
const REDRAW_MS = 100

const ERASE_TO_END = '\u001b[K'
const DIM = '\u001b[2m'
const NOT_DIM = '\u001b[22m'

/**
 * A terminal's last line, which says what is going on and is rewritten in place; what is told goes above it, what is
 * only mentioned is left to it. It never wraps, so that it can be erased, and is gone after `end`.
 */
export class LiveLine implements Reporter {
  readonly #options: LiveLineOptions
  readonly #startedAtMs: number
  #shown = ''
  #timer: unknown

  constructor(options: LiveLineOptions) {
    this.#options = options
    this.#startedAtMs = options.clock.now()
    this.#drawLater()
  }

  tell(line: string): void {
    this.#options.output.write(`${this.#erased()}${line}\n`)
  }

  mention(): void {}

  end(): void {
    this.#options.clock.clearTimeout(this.#timer)
    const erased = this.#erased()
    if (erased !== '') this.#options.output.write(erased)
  }

  #drawLater(): void {
    this.#timer = this.#options.clock.setTimeout(() => {
      this.#draw()
      this.#drawLater()
    }, REDRAW_MS)
  }

  /** The last column stays free: some terminals wrap when it is filled. */
  #draw(): void {
    const { output, terminal, clock, text } = this.#options
    const line = cutToWidth(text(clock.now() - this.#startedAtMs), terminal.columns - 1)
    if (line === this.#shown) return
    this.#shown = line
    output.write(`\r${terminal.hasColours ? `${DIM}${line}${NOT_DIM}` : line}${ERASE_TO_END}`)
  }

  /** What takes the line off the terminal, if it is there. */
  #erased(): string {
    const wasShown = this.#shown !== ''
    this.#shown = ''
    return wasShown ? `\r${ERASE_TO_END}` : ''
  }
}
