import { readFileSync } from 'node:fs'
import { redactedText } from '../../../runtime/ports/redact.ts'

/** The number of lines before and after the shown one. */
const AROUND = 2

/** The maximum length of a shown line. */
const LONGEST_LINE = 120

/** A position in a source file; line and column from 1. */
export interface SourcePlace {
  readonly path: string
  readonly line: number
  readonly column: number
}

/** The lines around a position, without secrets, with a mark at the column; `undefined` if the file has no such line. */
export function sourceLines({ path, line, column }: SourcePlace): string | undefined {
  const lines = linesOf(path)
  if (lines[line - 1] === undefined) return undefined
  const first = Math.max(1, line - AROUND)
  const shown = lines.slice(first - 1, line + AROUND)
  const width = String(first + shown.length - 1).length
  return shown
    .flatMap((text, i) => {
      const number = first + i
      const row =
        `${number === line ? '>' : ' '} ${String(number).padStart(width)} | ${redactedText(text).slice(0, LONGEST_LINE)}`.trimEnd()
      return number === line && column <= LONGEST_LINE
        ? [row, `  ${' '.repeat(width)} | ${' '.repeat(column - 1)}^`]
        : [row]
    })
    .join('\n')
}

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split(/\r?\n/)
  } catch {
    return []
  }
}
