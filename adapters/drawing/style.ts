import { shownText } from './svg-element.ts'

/** Font sizes, in pixels. */
export const KEY_SIZE = 14
export const TEXT_SIZE = 12
export const TAG_SIZE = 11

/** Colours by name: for the light and the dark theme. */
const COLOURS = {
  canvas: ['#ffffff', '#0d1117'],
  state: ['#ffffff', '#161b22'],
  label: ['#eef1f4', '#21262d'],
  border: ['#818b98', '#767f89'],
  edge: ['#6e7781', '#8b949e'],
  ink: ['#1f2328', '#e6edf3'],
  muted: ['#59636e', '#9ba3ad'],
  tag: ['#ddf4ff', '#14304f'],
  'tag-ink': ['#0550ae', '#a5d6ff'],
  active: ['#0969da', '#58a6ff'],
  'active-fill': ['#ddf4ff', '#0c2d52'],
  visited: ['#1a7f37', '#3fb950'],
  taken: ['#bc4c00', '#f0883e'],
  uncovered: ['#cf222e', '#ff7b72']
} as const

/** Colours as custom properties. A page overrides them with `--chart-…` properties in any theme. */
function colours(theme: 0 | 1): string {
  return Object.entries(COLOURS)
    .map(([name, themes]) => `--${name}:var(--chart-${name},${themes[theme]})`)
    .join(';')
}

/**
 * The font of all texts, with all that changes their widths, so that no style of a page makes them wider than they were
 * measured. With exact geometry the width of a text does not depend on the zoom.
 */
const FONT = `font:400 ${TEXT_SIZE}px system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;letter-spacing:0;word-spacing:0;text-transform:none;text-rendering:geometricPrecision`

/**
 * The style of charts. The classes `active`, `visited`, `taken` and `uncovered` highlight states and transitions. Each
 * colour is a custom property that a page may set, such as `--chart-ink`; the defaults are for a drawing on its own.
 */
export const CHART_STYLE = `
.statechart{${colours(0)}}
@media (prefers-color-scheme:dark){.statechart{${colours(1)}}}
.statechart .canvas{fill:var(--canvas)}
.statechart .box,.statechart .inner{fill:var(--state);stroke:var(--border);stroke-width:1.25}
.statechart .group>.box{fill:var(--border);fill-opacity:.06;pointer-events:stroke}
.statechart .region>.box{stroke-dasharray:6 4}
.statechart .divider{stroke:var(--border);stroke-width:1;opacity:.5}
.statechart text{fill:var(--ink);${FONT}}
.statechart .key{font-size:${KEY_SIZE}px;font-weight:700}
.statechart .group text:not(.tag){paint-order:stroke;stroke:var(--canvas);stroke-opacity:.6;stroke-width:3px;stroke-linejoin:round}
.statechart .does,.statechart .description{fill:var(--muted)}
.statechart .description{font-style:italic}
.statechart .tag{fill:var(--tag-ink);font-size:${TAG_SIZE}px}
.statechart .chip{fill:var(--tag)}
.statechart .edge{fill:none;stroke:var(--edge);stroke-width:1.5}
.statechart .transition:not(.active,.visited,.taken,.uncovered)>.shared{visibility:hidden}
.statechart .head,.statechart .dot{fill:var(--edge)}
.statechart .label{fill:var(--label)}
.statechart .active>.box{stroke:var(--active);stroke-width:2.5}
.statechart .leaf.active>.box{fill:var(--active-fill)}
.statechart .visited:not(.active)>.box{stroke:var(--visited);stroke-width:2}
.statechart .visited>.edge{stroke:var(--visited)}
.statechart .visited>.head{fill:var(--visited)}
.statechart .uncovered>.box,.statechart .uncovered>.edge{stroke:var(--uncovered);stroke-width:2}
.statechart .uncovered>.label{stroke:var(--uncovered)}
.statechart .uncovered>.head,.statechart .stays.uncovered>text{fill:var(--uncovered)}
.statechart .taken>.edge{stroke:var(--taken);stroke-width:3}
.statechart .taken>.label{stroke:var(--taken)}
.statechart .taken>.head,.statechart .stays.taken>text{fill:var(--taken)}
`

/** The style of what is new, gone or changed in a drawing of two charts, after that of charts. */
export const MARK_STYLE = `${markStyle('added', 'visited')}${markStyle('removed', 'uncovered')}${markStyle('changed', 'taken')}
.statechart .removed>.box,.statechart .removed>.edge{stroke-dasharray:6 4}
`

function markStyle(mark: string, colour: string): string {
  const of = (part: string) => `.statechart .${mark}>${part}`
  return `
${of('.box')},${of('.edge')},${of('.label')}{stroke:var(--${colour});stroke-width:2}
${of('.head')},.statechart .stays.${mark}>text{fill:var(--${colour})}
.statechart .transition.${mark}>.shared{visibility:visible!important}`
}

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
const AS_WIDE_AS_HIGH = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u
const WIDTH_OF_OTHERS = 0.64
const BOLD = 1.18

/**
 * The largest width of a text in pixels, in any font. No browser measures it, so this takes the widths of a wide font;
 * letters that are neither Latin nor as wide as high count as wider than a square.
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

/** Where a line may end, the best places first: at spaces, within names, anywhere. */
const BREAKS = [/(?<=\s)/u, /(?<=[./,_:-])|(?<=[\p{Ll}\d])(?=\p{Lu})/u, /(?!\p{M})/u]

/**
 * The text in at most `most` lines of at most `longest` pixels. The last one is truncated if the text is longer; each
 * line then has the original.
 */
export function wrapText(longest: number, given: string, size: number, most: number, isBold = false): CutText[] {
  const whole = shownText(given)
  const lines: string[] = []
  // No line has more characters than this, so the beginning of a long text is enough.
  let rest = whole.slice(0, Math.ceil((5 * longest * most) / size))
  while (lines.length < most - 1 && widthOf(rest, size, isBold) > longest) {
    const line = firstLine(longest, rest, size, isBold)
    lines.push(line.trimEnd())
    rest = rest.slice(line.length)
  }
  const last = cutText(longest, rest, size, isBold)
  const original = last.whole === undefined ? {} : { whole }
  return [
    ...lines.map(text => ({ text, width: widthOf(text, size, isBold), ...original })),
    { text: last.text, width: last.width, ...original }
  ]
}

/** The beginning of a text that fills a line, at least a third of it, up to the best place to break. */
function firstLine(longest: number, text: string, size: number, isBold: boolean): string {
  const width = (line: string) => widthOf(line.trimEnd(), size, isBold)
  const lines = BREAKS.map(places => {
    const pieces = text.split(places)
    let line = ''
    for (const piece of pieces) {
      if (width(line + piece) > longest) break
      line += piece
    }
    return line
  })
  return lines.find(line => width(line) >= longest / 3) as string
}

function widthOfOther(character: string): number {
  if (character < '\u007f') return WIDTH_OF_OTHERS
  if (character < '\u0250' || character === '…') return 1
  if (AS_WIDE_AS_HIGH.test(character)) return 1.05
  return character < '\u2e80' ? 1.3 : 1.5
}
