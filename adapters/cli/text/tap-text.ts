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

/** Test points as TAP 14, with comments at the end. */
export function tapText(points: readonly TapPoint[], comments: readonly string[]): string {
  const lines = points.flatMap(({ name, failure, skip, todo }, i) => {
    const point = `ok ${i + 1} - ${escaped(name)}${directive('skip', skip)}${directive('todo', todo)}`
    return failure === undefined ? [point] : [`not ${point}`, '  ---', '  message: |', ...plain(failure).split('\n').map(text => `    ${text}`), '  ...']
  })
  return ['TAP version 14', ...lines, `1..${points.length}`, ...comments.map(comment => `# ${oneLine(comment)}`), ''].join('\n')
}

function directive(name: 'skip' | 'todo', reason: string | undefined): string {
  return reason === undefined ? '' : ` # ${name.toUpperCase()} ${oneLine(reason)}`
}

/** Escapes the characters that begin a directive or a comment. */
function escaped(text: string): string {
  return oneLine(text).replaceAll(/[\\#]/g, String.raw`\$&`)
}
