import { readFileSync } from 'node:fs'
import { isAbsolute, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { redactValue, redactedText } from '../../../runtime/ports/logger.ts'
import { thrownText } from '../text/terminal.ts'
import { LOAD } from './fresh-module-hooks.ts'

/**
 * The folders of taskchart's code, compiled and, in a clone with source maps, as written: its frames are of no use to
 * an author.
 */
const OWN = ['../../../', '../../../../adapters/', '../../../../machines/', '../../../../runtime/'].map(folder =>
  fileURLToPath(new URL(folder, import.meta.url))
)

/** How many causes of an error are shown. */
const MOST_CAUSES = 3

/**
 * An error of the author's code as text without secrets: its message, the stack frames in the author's own files,
 * relative to `cwd`, and the source lines of the first one. Node and tsx map the frames to the source.
 */
export function authorErrorText(error: unknown, cwd: string): string {
  const shown = redactValue(error)
  const place = authorsOf(errorLines(shown))
    .map(placeOf)
    .find(place => place !== undefined)
  const source = place && sourceLines(place)
  return `${textOf(shown, cwd, MOST_CAUSES)}${source === undefined ? '' : `\n\n${source}`}`
}

function textOf(error: unknown, cwd: string, causes: number): string {
  const { cause } = Object(error) as { readonly cause?: unknown }
  const lines = errorLines(error)
  const text = [...lines.filter(line => !isFrame(line)), ...authorsOf(lines).map(frame => relativeTo(cwd, frame))].join(
    '\n'
  )
  return cause === undefined || causes === 0 ? text : `${text}\nCause: ${textOf(cause, cwd, causes - 1)}`
}

function errorLines(error: unknown): string[] {
  const { stack } = Object(error) as { readonly stack?: unknown }
  return (typeof stack === 'string' ? stack : `${thrownText(error)}, which is not an Error and has no stack.`).split(
    '\n'
  )
}

/** The stack frames in the author's own files. */
function authorsOf(lines: readonly string[]): string[] {
  return lines
    .filter(isFrame)
    .map(withPath)
    .filter(frame => !/node_modules|\bnode:/.test(frame) && !OWN.some(folder => frame.includes(folder)))
}

/** The position of a frame; `undefined` if it has none. */
function placeOf(frame: string): SourcePlace | undefined {
  const [, path, line, column] = /(?:\(| at (?:async )?)([^()]+):(\d+):(\d+)\)?$/.exec(frame) ?? []
  return path === undefined ? undefined : { path, line: Number(line), column: Number(column) }
}

function isFrame(line: string): boolean {
  return /^\s+at /.test(line)
}

/** A frame with the path of its file instead of a URL. */
function withPath(frame: string): string {
  return frame
    .replace(new RegExp(String.raw`\?${LOAD}=\d+`), '')
    .replace(/file:\/\/\/[^\s)]*?(?=:\d+:\d+)/, url => fileURLToPath(url))
}

/** A frame whose path is relative to a folder, if it is in there. */
function relativeTo(folder: string, frame: string): string {
  return frame.replace(/(?<=[( ])[^\s()]+(?=:\d+:\d+\)?$)/, path => {
    const within = relative(folder, path)
    return isAbsolute(path) && !within.startsWith('..') ? within : path
  })
}

/** The number of lines before and after the shown one. */
const AROUND = 2

/** The maximum length of a shown line. */
const LONGEST_LINE = 120

/** A position in a source file; line and column from 1. */
interface SourcePlace {
  readonly path: string
  readonly line: number
  readonly column: number
}

/**
 * The lines around a position, without secrets, with a mark at the column; `undefined` if the file has no such line.
 */
function sourceLines({ path, line, column }: SourcePlace): string | undefined {
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
