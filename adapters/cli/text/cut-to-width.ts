/**
 * As much of a line as fits into a number of columns, with `…` where it is cut. Characters from U+1100 on, where the
 * wide ones begin, count for two columns: what comes out is never too wide, and with narrow ones among them shorter
 * than it could be.
 */
export function cutToWidth(line: string, columns: number): string {
  let width = 0
  let length = 0
  let lengthBeforeDots = 0
  for (const character of line) {
    width += widthOf(character)
    if (width > columns) return `${line.slice(0, lengthBeforeDots)}…`
    length += character.length
    if (width <= columns - widthOf('…')) lengthBeforeDots = length
  }
  return line
}

function widthOf(character: string): number {
  return character < '\u1100' ? 1 : 2
}
