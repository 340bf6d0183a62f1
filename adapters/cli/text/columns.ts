/** On a terminal, the maximum width of the columns between the first and the last, in characters. */
const CELL_COLUMNS = 24

/** Rows as aligned lines. Cells are single lines. On a terminal, lines are cut to its width. */
export function tableLines(rows: readonly (readonly string[])[], columns = Infinity): string[] {
  const fitting = rows.map(row =>
    row.map((cell, index) =>
      index === 0 || index === row.length - 1 || columns === Infinity ? cell : cutToWidth(cell, CELL_COLUMNS)
    )
  )
  const widths = fitting.reduce<number[]>(
    (before, row) => row.map((cell, index) => Math.max(before[index] ?? 0, cell.length)),
    []
  )
  return fitting.map(row =>
    cutToWidth(
      row
        .map((cell, index) => cell.padEnd(Number(widths[index])))
        .join('  ')
        .trimEnd(),
      columns
    )
  )
}

/**
 * Cuts a line to a number of columns, with `…` at the cut. Every character from U+1100, where the wide ones begin, counts two
 * columns. So the result is never too wide, but may be shorter than necessary.
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
