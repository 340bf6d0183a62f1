import { shownText } from '../svg/svg-element.ts'

/** Widths of characters relative to the font size: those of DejaVu Sans, the widest common font. */
const WIDTHS: readonly (readonly [characters: string, width: number])[] = [
  ["'ijlIJ ,.", 0.32],
  ['/:;\\f|', 0.36],
  ['()-[]t!r', 0.44],
  ['"*_`', 0.52],
  ['?Lcsz', 0.56],
  ['Fkvxy', 0.6],
  ['KABCRVXZ', 0.72],
  ['HNU&DGOQ', 0.8],
  ['#+<=>^w~M', 0.88],
  ['%@Wm', 1]
]
const BY_CHARACTER = new Map(
  WIDTHS.flatMap(([characters, width]) => Array.from(characters, character => [character, width] as const))
)
const WIDTH_OF_OTHERS = 0.64
const BOLD = 1.18

/**
 * The largest width of a text in pixels, in any font. No browser measures it, so this takes the widths of a wide font; letters that are not
 * Latin count as wider than a square.
 */
export function widthOf(text: string, size: number, isBold = false): number {
  const parts = Array.from(text, character => BY_CHARACTER.get(character) ?? widthOfOther(character))
  return parts.reduce((sum, width) => sum + width, 0) * size * (isBold ? BOLD : 1)
}

/** A text to draw, its largest width in pixels, and the original if it was truncated. */
export interface CutText {
  readonly text: string
  readonly width: number
  readonly whole?: string
}

/** The text in one line, truncated with an ellipsis if it would be wider than `longest` pixels. */
export function cutText(longest: number, given: string, size: number, isBold = false): CutText {
  const whole = shownText(given)
  const width = widthOf(whole, size, isBold)
  if (width <= longest) return { text: whole, width }
  // No character is narrower than a fifth of the font size, so the beginning of a long text is enough.
  const characters = Array.from(whole.slice(0, Math.ceil((5 * longest) / size)))
  while (widthOf(`${characters.join('')}…`, size, isBold) > longest) characters.pop()
  const text = `${characters.join('').trimEnd()}…`
  return { text, width: widthOf(text, size, isBold), whole }
}

function widthOfOther(character: string): number {
  if (character < '\u007f') return WIDTH_OF_OTHERS
  if (character < '\u0250' || character === '…') return 1
  return character < '\u2e80' ? 1.3 : 1.5
}
