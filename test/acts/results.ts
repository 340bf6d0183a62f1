import { CORRECTIONS } from './corrections.ts'
import type { ActsTest } from './corpus.ts'
import { LEFT_OUT } from './specials.ts'

/** What came of the tests on one binding, or of those for clients. */
export interface Column {
  readonly name: string
  /** The tests that pass as they are written. */
  readonly passed: string[]
  /** Those that pass as they are corrected. */
  readonly corrected: string[]
  /** Those that cannot pass. */
  readonly failed: string[]
}

const TITLES: Readonly<Record<string, string>> = {
  jsonrpc: 'JSON-RPC',
  rest: 'REST',
  grpc: 'gRPC',
  websocket: 'WebSocket',
  client: 'client, by JSON-RPC'
}

const BEGIN = '<!-- acts -->\n'
const END = '<!-- end of acts -->'

/** The guide with what came of ACTS between its two marks. */
export function withResults(guide: string, columns: readonly Column[], corpus: readonly ActsTest[]): string {
  const [head, rest] = guide.split(BEGIN)
  const tail = rest?.slice(rest.indexOf(END))
  if (head === undefined || !tail?.startsWith(END))
    throw new Error(`The guide has to have the lines ${BEGIN.trim()} and ${END}.`)
  return [`${head}${BEGIN}`, counts(columns), corrections(corpus), leftOut(), tail].join('\n')
}

function counts(columns: readonly Column[]): string {
  const row = (name: string, count: (column: Column) => number) => [name, ...columns.map(count)]
  return table(
    ['', ...columns.map(({ name }) => TITLES[name] ?? name)],
    [
      row('pass as they are written', ({ passed }) => passed.length),
      row('pass as they are corrected', ({ corrected }) => corrected.length),
      row('cannot pass', ({ failed }) => failed.length)
    ]
  )
}

function corrections(corpus: readonly ActsTest[]): string {
  const levelOf = (id: string) => corpus.find(test => test.id === id)?.level ?? ''
  return table(
    ['Test', '', 'It wants that', 'It is not so, because', 'Corrected'],
    CORRECTIONS.map(({ id, wants, why, instead }) => [id, levelOf(id), wants, why, instead ? 'yes' : 'no'])
  )
}

function leftOut(): string {
  return table(['Test', 'What it leaves to its runner, and is not done'], Object.entries(LEFT_OUT))
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  return `${[head, head.map(() => '---'), ...rows].map(cells => `| ${cells.join(' | ')} |`).join('\n')}\n`
}
