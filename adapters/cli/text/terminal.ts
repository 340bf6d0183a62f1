/** A terminal whose last line can be rewritten. */
export interface Terminal {
  /** Its current width, in characters. */
  readonly columns: number
  readonly hasColours: boolean
}

/** A stream that may be a terminal: `process.stderr`. */
export interface MaybeTerminal {
  readonly isTTY?: boolean
  readonly columns?: number
  hasColors?(env: object): boolean
}

/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>

/** The same terminal, with or without colours. */
export function withColours(terminal: Terminal | undefined, hasColours: boolean): Terminal | undefined {
  if (!terminal) return undefined
  return {
    get columns() {
      return terminal.columns
    },
    hasColours
  }
}

/** The width of a terminal that reports 0. */
export const USUAL_COLUMNS = 80

/** The terminal behind a stream. `undefined` for pipes and files, and for terminals that cannot move the cursor back (`TERM=dumb`). */
export function terminalOf(stream: MaybeTerminal, env: Environment): Terminal | undefined {
  if (!stream.isTTY || env['TERM'] === 'dumb') return undefined
  return {
    get columns() {
      return stream.columns || USUAL_COLUMNS
    },
    // Node reads NO_COLOR and the terminal's capabilities here.
    hasColours: stream.hasColors?.(env) ?? false
  }
}
