import { oneLine, plain } from './terminal-text.ts'

/** One test, as TAP has it. */
export interface TapPoint {
  readonly name: string
  /** What failed, as lines; `undefined` if it passed. */
  readonly failure?: string | undefined
  /** Why it was not run. */
  readonly skip?: string | undefined
  /** Why it does not count that it failed. */
  readonly todo?: string | undefined
}

/** Tests as TAP 14, with comments at the end. */
export function tapText(points: readonly TapPoint[], comments: readonly string[]): string {
  const lines = points.flatMap(({ name, failure, skip, todo }, i) => {
    const directive = skip === undefined ? (todo === undefined ? '' : ` # TODO ${oneLine(todo)}`) : ` # SKIP ${oneLine(skip)}`
    const point = `ok ${i + 1} - ${escaped(name)}${directive}`
    return failure === undefined ? [point] : [`not ${point}`, '  ---', '  message: |', ...plain(failure).split('\n').map(text => `    ${text}`), '  ...']
  })
  return ['TAP version 14', ...lines, `1..${points.length}`, ...comments.map(comment => `# ${oneLine(comment)}`), ''].join('\n')
}

/** Text in which nothing begins a directive or a comment. */
function escaped(text: string): string {
  return oneLine(text).replaceAll(/[\\#]/g, String.raw`\$&`)
}
