import { chartsOf, type AgentChart } from '../drawing/agent-charts.ts'
import { drawChart } from '../drawing/chart-drawing.ts'
import { chartSource, SOURCE_BEGINS } from '../drawing/chart-source.ts'
import { chartMermaid } from '../drawing/mermaid.ts'
import { outlineOf } from '../drawing/outline.ts'
import { readArguments } from './arguments.ts'
import { CommandError, EXIT, usageError, type Command, type Io } from './command.ts'
import { writeOwn, type OwnFile } from './files.ts'
import { loadUnlessStopped } from './load-agent.ts'
import { jsonLine, oneLine } from './text/terminal.ts'

/** `taskchart graph`: draws the charts of an agent. */
export const graphCommand: Command = {
  usage: ['taskchart graph AGENT.ts|js [--format svg|mermaid|xstate|json] [--chart NAME] [--out DIR]'],
  details: `Draws every chart of the agent: the chart of its work, if that is a statechart, and of the actors that it starts
(child:NAME); the chart of its negotiation(…), if it has one; and taskchart's own charts of tasks and contexts. Each is a file in a
folder, named after the chart: charts/work.svg. Files that this command wrote before are overwritten. If another file
has one of these names, nothing is written.

  --format svg      a self-contained drawing for light and dark backgrounds (the default; needs elkjs)
  --format mermaid  mermaid text, as in Markdown on GitHub
  --format xstate   a module with createMachine, which Stately's editor imports: names of actions and guards, no code
  --format json     states and transitions, for other tools
  --chart NAME      only this one, to stdout unless there is --out: work, negotiation, task, context or child:NAME
  --out DIR         the folder for the files (default charts), created if needed

Exit codes: 0 drawn, 1 an error, 2 wrong usage, 130 stopped with Ctrl-C before files were written.
`,
  run
}

const OPTIONS = { format: { type: 'string' }, chart: { type: 'string' }, out: { type: 'string' } } as const

/** An output format. A file that starts with `begins` was written by this command. */
interface Format {
  readonly extension: string
  readonly begins: string
  readonly draw: (chart: AgentChart) => string | Promise<string>
}

const MERMAID = '%% Drawn by taskchart graph.\n'
const FORMATS: Readonly<Record<string, Format>> = {
  svg: {
    extension: 'svg',
    begins: '<svg xmlns="http://www.w3.org/2000/svg" class="statechart"',
    draw: ({ machine }) => drawChart(machine)
  },
  mermaid: { extension: 'mmd', begins: MERMAID, draw: ({ machine }) => `${MERMAID}${chartMermaid(machine)}` },
  xstate: { extension: 'machine.js', begins: SOURCE_BEGINS, draw: ({ machine }) => chartSource(machine) },
  json: {
    extension: 'json',
    begins: '{"chart":',
    draw: ({ id, machine }) => jsonLine({ chart: id, ...outlineOf(machine) })
  }
}

async function run(args: readonly string[], { stdout, stderr, cwd, signal }: Io): Promise<number> {
  const {
    values: { format: formatName = 'svg', chart, out },
    positionals: [file]
  } = readArguments(args, OPTIONS, ['AGENT.ts|js'])
  const format = Object.hasOwn(FORMATS, formatName) ? FORMATS[formatName] : undefined
  if (!format) throw usageError(`There is no --format ${formatName}. There are: ${Object.keys(FORMATS).join(', ')}.`)
  const { agent } = await loadUnlessStopped(file, { cwd, signal })
  const all = chartsOf(agent)
  const name = oneLine(agent.card.name)
  const charts = chart === undefined ? all : all.filter(({ id }) => id === chart)
  if (charts.length === 0)
    throw new CommandError(
      `${name} has no chart ${String(chart)}. It has: ${all.map(({ id }) => id).join(', ')}.${withoutChart(agent.work)}`
    )
  const [only] = charts
  if (chart !== undefined && out === undefined && only) {
    stdout.write(await format.draw(only))
    return EXIT.ok
  }
  const files: OwnFile[] = []
  for (const one of charts)
    files.push({ name: `${fileName(one)}.${format.extension}`, text: await format.draw(one), begins: format.begins })
  signal.throwIfAborted()
  for (const path of await writeOwn(files, out ?? 'charts', cwd)) stderr.write(`${path}\n`)
  if (chart === undefined) stderr.write(withoutChart(agent.work).replace(/^ (.*)$/, '$1\n'))
  return EXIT.ok
}

function withoutChart(work: unknown): string {
  return typeof work === 'function' ? ' Its work is a function, which has no chart.' : ''
}

/** A file name that is valid on every system: actor names may contain any character. */
function fileName({ id }: AgentChart): string {
  return id.replace(/^child:/, 'child-').replace(/[^\w.-]/g, character => `%${character.charCodeAt(0).toString(16)}`)
}
