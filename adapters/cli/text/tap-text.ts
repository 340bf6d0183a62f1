import { oneLine, plain } from './terminal-text.ts'

/** One test point of TAP. */
export interface TapPoint {
  readonly name: string
  /** The failure, in lines; `undefined` if the test passed. */
  readonly failure?: string | undefined
  /** Why the test was skipped. */
  readonly skip?: string | undefined
  /** Why a failure does not count. */
  readonly todo?: string | undefined
}

/** The beginning of a TAP 14 text with this number of test points. */
export function tapHead(count: number): string {
  return `TAP version 14\n1..${count}\n`
}

/** A test point, with its number from 1. */
export function tapPoint({ name, failure, skip, todo }: TapPoint, number: number): string {
  const point = `ok ${number} - ${escaped(name)}${directive('skip', skip)}${directive('todo', todo)}`
  const lines =
    failure === undefined
      ? [point]
      : [
          `not ${point}`,
          '  ---',
          '  message: |',
          ...plain(failure)
            .split('\n')
            .map(text => `    ${text}`),
          '  ...'
        ]
  return lines.map(line => `${line}\n`).join('')
}

/** Comments at the end of a TAP text. */
export function tapComments(comments: readonly string[]): string {
  return comments.map(comment => `# ${oneLine(comment)}\n`).join('')
}

function directive(name: 'skip' | 'todo', reason: string | undefined): string {
  return reason === undefined ? '' : ` # ${name.toUpperCase()} ${oneLine(reason)}`
}

/** Escapes the characters that begin a directive or a comment. */
function escaped(text: string): string {
  return oneLine(text).replaceAll(/[\\#]/g, String.raw`\$&`)
}
