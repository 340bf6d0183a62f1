import { usageError, type Terminal, type Environment, type Colours } from '../command.ts'

/** A stream that may be a terminal: `process.stderr`. */
interface MaybeTerminal {
  readonly isTTY?: boolean
  readonly columns?: number
  hasColors?(env: object): boolean
}

/** A terminal with or without colours. */
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

/**
 * The terminal behind a stream. `undefined` for pipes and files, and for terminals that cannot move the cursor back
 * (`TERM=dumb`).
 */
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

/** The codes of SGR (ECMA-48) that begin and end a style. */
const STYLES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39]
} as const

export type Style = keyof typeof STYLES

/** Text in a style, where there are colours. */
export function styleText(hasColours: boolean, style: Style, text: string): string {
  const [begin, end] = STYLES[style]
  return hasColours ? `\u001b[${begin}m${text}\u001b[${end}m` : text
}

const WHENS = ['always', 'never', 'auto']

/**
 * Reads `--color WHEN` anywhere before `--`, and gives the other arguments. `auto` stands for `usual`. Throws a usage
 * error for another value, or none.
 */
export function readColours(argv: readonly string[], usual: Colours): { colours: Colours; rest: string[] } {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length
  const at = argv.slice(0, end).findLastIndex(word => word === '--color' || word.startsWith('--color='))
  if (at === -1) return { colours: usual, rest: [...argv] }
  const isJoined = argv[at] !== '--color'
  const when = isJoined ? argv[at]?.slice('--color='.length) : argv[at + 1]
  if (when === undefined || !WHENS.includes(when))
    throw usageError(`--color takes ${WHENS.join(', ')}${when === undefined ? '' : `, not ${JSON.stringify(when)}`}.`)
  const rest = argv.toSpliced(at, isJoined ? 1 : 2)
  return { colours: when === 'auto' ? usual : { stdout: when === 'always', stderr: when === 'always' }, rest }
}

/* oxlint-disable no-control-regex -- control characters are what this file is about */

/** Invisible characters, and those that turn the direction of others or end a line. */
const UNSEEN = /[\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029]/u

/**
 * The same, and the emoji that are made with them. TypeScript accepts the flag v in literals only for newer targets.
 */
const EMOJI_OR_UNSEEN = new RegExp(
  String.raw`\p{RGI_Emoji}|([\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029])`,
  'gv'
)

/**
 * Removes control characters, except new lines and tabs, and shows invisible characters and direction marks as escapes
 * such as `\u202e`, so that untrusted text is safe on a terminal.
 */
export function plain(text: string): string {
  return seen(text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, ''))
}

/** Shows invisible characters and direction marks as escapes, except those within emoji. */
function seen(text: string): string {
  if (!UNSEEN.test(text)) return text
  return text.replace(EMOJI_OR_UNSEEN, (found: string, unseen: string | undefined) =>
    unseen === undefined ? found : escaped(unseen)
  )
}

function escaped(text: string): string {
  return text
    .split('')
    .map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
}

/** Does the same, and joins the lines. */
export function oneLine(text: string): string {
  return plain(text.replace(/\s+/g, ' ')).trim()
}

/** A thrown value as text, also one whose conversion throws. */
export function thrownText(thrown: unknown): string {
  try {
    return thrown instanceof Error ? thrown.message : String(thrown)
  } catch {
    return `A value of type ${typeof thrown}`
  }
}

/** A value as one line of JSON that is safe on a terminal. */
export function jsonLine(value: unknown): string {
  return `${seen(JSON.stringify(value).replace(/[\u007f-\u009f]/g, escaped))}\n`
}

/** A number of bytes for people: `532 bytes`, `45.1 kB`. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return bytes === 1 ? '1 byte' : `${bytes} bytes`
  return bytes < 999_950 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}

/** A word for a shell, quoted if needed. */
export function shellWord(word: string): string {
  const shown = oneLine(word)
  return /^[\w@%+=:,./-]+$/.test(shown) ? shown : shellText(shown)
}

/** Text for a shell, always quoted. */
export function shellText(text: string): string {
  const shown = oneLine(text)
  return /["$`\\!]/.test(shown) ? `'${shown.replaceAll("'", `'\\''`)}'` : `"${shown}"`
}
