import type { Fault } from './fault.ts'
import { LAYERS } from './layers.ts'
import type { Ran } from './run-file.ts'

/**
 * What came of a fault in each layer by its name, none where the layer does not load the file, and in its unit test if
 * no layer caught it.
 */
export interface Judgement {
  readonly fault: Fault
  readonly layers: ReadonlyMap<string, Ran>
  readonly unit?: Ran
}

const BEGIN = '<!-- faults -->\n'
const END = '<!-- end of faults -->'
const LONGEST_WORDS = 90

export function isCaught(ran: Ran | undefined): boolean {
  return ran !== undefined && ran.outcome !== 'passed'
}

/**
 * The page with the row of this fault made anew, and those of others as they were; `names` are those of the list, in
 * its order.
 */
export function withJudgement(page: string, judgement: Judgement, names: readonly string[]): string {
  const [head, rest] = page.split(BEGIN)
  const at = rest?.indexOf(END) ?? -1
  if (head === undefined || rest === undefined || at < 0)
    throw new Error(`The page has to have the lines ${BEGIN.trim()} and ${END}.`)
  const rows = new Map(
    rest
      .slice(0, at)
      .split('\n')
      .map(line => [line.split(' | ')[0]?.replace('| ', '') ?? '', line])
  )
  rows.set(judgement.fault.name, row(judgement))
  const columns = ['Fault', 'In', ...LAYERS.map(({ name }) => name), 'What is said first']
  const table = [lineOf(columns), lineOf(columns.map(() => '---')), ...names.flatMap(name => rows.get(name) ?? [])]
  return `${head}${BEGIN}\n${table.join('\n')}\n\n${rest.slice(at)}`
}

function row({ fault: { name, file, unit }, layers, unit: held }: Judgement): string {
  const caught = LAYERS.map(({ name }) => layers.get(name)).find(isCaught)
  const words = caught?.words ?? (isCaught(held) ? `no layer; \`${unit}\`: ${held?.words}` : 'nothing catches it')
  return lineOf([name, `\`${file}\``, ...LAYERS.map(({ name }) => cellOf(layers.get(name))), shortened(words)])
}

function cellOf(ran: Ran | undefined): string {
  if (!ran) return ''
  return ran.outcome === 'passed' ? '–' : ran.outcome === 'hung' ? 'hangs' : 'caught'
}

function shortened(words: string): string {
  const plain = words.replaceAll(/\s+/g, ' ').replaceAll('|', '/')
  return plain.length > LONGEST_WORDS ? `${plain.slice(0, LONGEST_WORDS)} …` : plain
}

function lineOf(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`
}
