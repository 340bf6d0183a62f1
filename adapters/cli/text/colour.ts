import { usageError } from '../command.ts'

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

/** Whether an output shows colours. */
export interface Colours {
  readonly stdout: boolean
  readonly stderr: boolean
}

/** Text in a style, where there are colours. */
export function styled(hasColours: boolean, style: Style, text: string): string {
  const [begin, end] = STYLES[style]
  return hasColours ? `\u001b[${begin}m${text}\u001b[${end}m` : text
}

const WHENS = ['always', 'never', 'auto']

/**
 * Reads `--color WHEN` anywhere before `--`, and gives the other arguments. `auto` stands for `usual`. Throws a usage error for another
 * value, or none.
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
