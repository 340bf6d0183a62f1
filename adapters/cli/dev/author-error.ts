import { isAbsolute, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { redacted } from '../../../runtime/ports/redact.ts'
import { thrownText } from '../text/terminal-text.ts'
import { LOAD } from './fresh-module-hooks.ts'

/** The folders of taskchart's code, compiled and, in a clone with source maps, as written: its frames tell an author nothing. */
const OWN = ['../../../', '../../../../adapters/', '../../../../machines/', '../../../../runtime/'].map(folder => fileURLToPath(new URL(folder, import.meta.url)))

/** How many causes of an error are shown. */
const MOST_CAUSES = 3

/**
 * An error of the author's code as text without secrets: its message, and the stack frames in the author's own files, relative to
 * `cwd`. Node and tsx map the frames to the source.
 */
export function authorErrorText(error: unknown, cwd: string): string {
  return textOf(redacted(error), cwd, MOST_CAUSES)
}

function textOf(error: unknown, cwd: string, causes: number): string {
  const { stack, cause } = Object(error) as { readonly stack?: unknown; readonly cause?: unknown }
  const lines = (typeof stack === 'string' ? stack : `${thrownText(error)}, which is not an Error and has no stack.`).split('\n')
  const frames = lines.filter(isFrame).map(withPath)
  const authors = frames.filter(frame => !/node_modules|\bnode:/.test(frame) && !OWN.some(folder => frame.includes(folder)))
  const text = [...lines.filter(line => !isFrame(line)), ...authors.map(frame => relativeTo(cwd, frame))].join('\n')
  return cause === undefined || causes === 0 ? text : `${text}\nCause: ${textOf(cause, cwd, causes - 1)}`
}

function isFrame(line: string): boolean {
  return /^\s+at /.test(line)
}

/** A frame with the path of its file instead of a URL. */
function withPath(frame: string): string {
  return frame.replace(new RegExp(String.raw`\?${LOAD}=\d+`), '').replace(/file:\/\/\/[^\s)]*?(?=:\d+:\d+)/, url => fileURLToPath(url))
}

/** A frame whose path is relative to a folder, if it is in there. */
function relativeTo(folder: string, frame: string): string {
  return frame.replace(/(?<=[( ])[^\s()]+(?=:\d+:\d+\)?$)/, path => {
    const within = relative(folder, path)
    return isAbsolute(path) && !within.startsWith('..') ? within : path
  })
}
