import type { Clock } from '../../../runtime/ports/clock.ts'
import type { Output, Terminal } from '../command.ts'
import { cutToWidth } from './format.ts'

/** Prints the progress of a command. */
export interface Reporter {
  /** Prints a line of the result. */
  print(line: string): void
  /** Prints a line that is valid until the next one. */
  mention(line: string): void
  /** Erases a live line, so that other output can follow. May be called twice; `print` still works after it. */
  end(): void
}

/** Prints every line, for pipes and files. */
export function plainReporter(output: Output): Reporter {
  const print = (line: string) => output.write(`${line}\n`)
  return { print, mention: print, end: () => {} }
}

export interface LiveLineOptions {
  readonly output: Output
  readonly terminal: Terminal
  readonly clock: Clock
  /** The text of the line, without line breaks or control characters. */
  readonly text: (elapsedMs: number) => string
}

/** The interval between redraws, whatever the rate of events. */
const REDRAW_MS = 100

const ERASE_TO_END = '\u001b[K'
const DIM = '\u001b[2m'
const NOT_DIM = '\u001b[22m'

/**
 * The last line of a terminal, which shows progress and is rewritten in place. `print` prints above it; `mention`
 * prints nothing. The line never wraps, so that it can be erased. `end` erases it.
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

  print(line: string): void {
    this.#options.output.write(`${this.#erased()}${line}\n`)
  }

  mention(): void {}

  /** Erases the line until it is drawn again, so that results can be written to the same terminal. */
  erase(): void {
    const erased = this.#erased()
    if (erased !== '') this.#options.output.write(erased)
  }

  end(): void {
    this.#options.clock.clearTimeout(this.#timer)
    this.erase()
  }

  #drawLater(): void {
    this.#timer = this.#options.clock.setTimeout(() => {
      this.#draw()
      this.#drawLater()
    }, REDRAW_MS)
  }

  /** Leaves the last column free: some terminals wrap when it is filled. */
  #draw(): void {
    const { output, terminal, clock, text } = this.#options
    const line = cutToWidth(text(clock.now() - this.#startedAtMs), terminal.columns - 1)
    if (line === this.#shown) return
    this.#shown = line
    output.write(`\r${terminal.hasColours ? `${DIM}${line}${NOT_DIM}` : line}${ERASE_TO_END}`)
  }

  /** The control sequence that erases the line, if it is shown. */
  #erased(): string {
    const wasShown = this.#shown !== ''
    this.#shown = ''
    return wasShown ? `\r${ERASE_TO_END}` : ''
  }
}

/** Where there is no terminal, a line of progress is printed this often. */
export const PLAIN_MS = 10_000

/** The progress of a long command. */
export interface Counter {
  /** Called before results are written. */
  erase(): void
  /** Called once, at the end. */
  end(): void
}

/** Shows the progress of a command: a live line on a terminal, otherwise a line every ten seconds. */
export function counter({
  output,
  terminal,
  clock,
  text
}: Omit<LiveLineOptions, 'terminal' | 'text'> & {
  readonly terminal: Terminal | undefined
  readonly text: () => string
}): Counter {
  if (terminal) return new LiveLine({ output, terminal, clock, text })
  let timer: unknown
  const wait = () => {
    timer = clock.setTimeout(() => {
      output.write(`${text()}\n`)
      wait()
    }, PLAIN_MS)
  }
  wait()
  return { erase: () => {}, end: () => clock.clearTimeout(timer) }
}
