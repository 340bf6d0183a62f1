/** A terminal whose last line can be rewritten. */
export interface Terminal {
  /** Its width now, in characters. */
  readonly columns: number
  readonly hasColours: boolean
}

/** What may be a terminal: `process.stderr`. */
export interface MaybeTerminal {
  readonly isTTY?: boolean
  readonly columns?: number
  hasColors?(env: object): boolean
}

type Environment = Readonly<Record<string, string | undefined>>

/** The width of a terminal that does not know it, and says 0. */
export const USUAL_COLUMNS = 80

/** The terminal that a stream is. Nothing for pipes and files, and for terminals that cannot move back (`TERM=dumb`). */
export function terminalOf(stream: MaybeTerminal, env: Environment): Terminal | undefined {
  if (!stream.isTTY || env['TERM'] === 'dumb') return undefined
  return {
    get columns() {
      return stream.columns || USUAL_COLUMNS
    },
    // Node heeds NO_COLOR here, and what the terminal can do.
    hasColours: stream.hasColors?.(env) ?? false
  }
}
