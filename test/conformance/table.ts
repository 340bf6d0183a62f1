import type { Binding } from './binding.ts'
import type { Row } from './row.ts'
import type { Cell, Results } from './run.ts'

/** The guide with the table between its two marks made of what a run gave. */
export function withResults(
  guide: string,
  bindings: readonly Binding[],
  parts: Readonly<Record<string, readonly Row[]>>,
  results: Results
): string {
  const [head, rest] = guide.split(BEGIN)
  const tail = rest?.slice(rest.indexOf(END))
  if (head === undefined || !tail?.startsWith(END))
    throw new Error(`The guide has to have the lines ${BEGIN.trim()} and ${END}.`)
  const reasons = reasonsOf(bindings, Object.values(parts).flat(), results)
  const tables = Object.entries(parts).map(
    ([title, rows]) => `### ${title}\n\n${table(bindings, rows, results, reasons)}`
  )
  const notes = reasons.map((reason, i) => `${i + 1}. ${reason}`)
  return `${head}${BEGIN}\n${tables.join('\n\n')}\n\n### Notes\n\n${notes.join('\n')}\n\n${tail}`
}

const BEGIN = '<!-- results -->\n'
const END = '<!-- end of results -->'

function table(
  bindings: readonly Binding[],
  rows: readonly Row[],
  results: Results,
  reasons: readonly string[]
): string {
  const head = ['', '', 'Requirement', '§', ...bindings.map(({ name }) => name)]
  const lines = rows.map(({ id, level, says, section }) => [
    id,
    level,
    says,
    section,
    ...bindings.map(({ name }) => cellText(results.get(name)?.get(id), reasons))
  ])
  return [head, ['--:', ...head.slice(1).map(() => '---')], ...lines]
    .map(cells => `| ${cells.join(' | ')} |`)
    .join('\n')
}

function cellText(cell: Cell | undefined, reasons: readonly string[]): string {
  if (!cell) return 'fail'
  return cell.reason === undefined ? cell.outcome : `${cell.outcome} (${reasons.indexOf(cell.reason) + 1})`
}

/** The reasons in the order of the table, each once. */
function reasonsOf(bindings: readonly Binding[], rows: readonly Row[], results: Results): string[] {
  const cells = rows.flatMap(({ id }) => bindings.map(({ name }) => results.get(name)?.get(id)))
  return [...new Set(cells.flatMap(cell => (cell?.reason === undefined ? [] : [cell.reason])))]
}
