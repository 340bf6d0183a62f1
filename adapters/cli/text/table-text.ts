import { cutToWidth } from './cut-to-width.ts'

/** On a terminal no column but the first and the last takes more of a line, in characters. */
const CELL_COLUMNS = 24

/** Rows as lines with their cells, which are single lines, below each other. On a terminal nothing is wider than that. */
export function tableLines(rows: readonly (readonly string[])[], columns = Infinity): string[] {
  const fitting = rows.map(row => row.map((cell, index) => (index === 0 || index === row.length - 1 || columns === Infinity ? cell : cutToWidth(cell, CELL_COLUMNS))))
  const widths = fitting.reduce<number[]>((before, row) => row.map((cell, index) => Math.max(before[index] ?? 0, cell.length)), [])
  return fitting.map(row => cutToWidth(row.map((cell, index) => cell.padEnd(Number(widths[index]))).join('  ').trimEnd(), columns))
}
