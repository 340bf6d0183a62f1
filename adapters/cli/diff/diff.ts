import { resolve } from 'node:path'
import { drawMerged } from '../../drawing/chart-drawing.ts'
import { mergedChart } from '../../drawing/merged-chart.ts'
import { mermaidOf } from '../../drawing/mermaid.ts'
import { type AgentDiff, type ChartDiff, diffAgents } from '../../testing/diff/agent-diff.ts'
import type { ChangeVerdict } from '../../testing/diff/verdicts.ts'
import { readOptions, readPositionals } from '../arguments.ts'
import { CommandError, EXIT, usageError, type Command, type Io } from '../command.ts'
import { loadUnlessStopped } from '../load-agent.ts'
import { diffJson, diffMarkdown, diffText } from './diff-text.ts'
import { withWorktree } from './worktree.ts'

/** `taskchart diff`: what a change of an agent means for the tasks that are open. */
export const diffCommand: Command = {
  usage: `taskchart diff OLD.ts|js NEW.ts|js [-o FORMAT | --json] [--chart NAME]
       taskchart diff AGENT.ts|js --since REVISION [-o FORMAT | --json] [--chart NAME]`,
  details: `Compares two versions of an agent: states, transitions, guards, timers, questions, actors, and the text of their code. Then it
says for every configuration that stored tasks can be in what they do with the new version:

  same          it goes on the same way
  otherwise     it goes on, but not the same way: these states have changed, these endings are new or gone
  other answer  it waits for an answer in another form
  depends       code decides whose text has changed; for a guard, both ways are shown
  unknown       the chart has more configurations than are followed
  never ends    no end is left: only a cancel, a deadline or an error ends it
  not restored  it fails when it is restored

A function has no configurations: it runs again from its start, and its tasks go on the same way if nothing has changed.
The head of the output names what is not seen. Both modules are loaded, no work is started.

  --since REVISION  compare with the module at a revision of git, in a worktree that has the node_modules of today
  -o FORMAT         text (the default), json, markdown (for a comment on a pull request), mermaid, or svg (needs elkjs): the chart
                    with what is new, gone and changed
  --json            the same as -o json: one document
  --chart NAME      only this chart: work, or child:NAME for an actor of the work. mermaid and svg draw one; default work

Exit codes: 0 all go on the same way, 1 an error, 2 wrong usage, 10 some cannot go on, 11 some go on otherwise, or it cannot be
said, 130 stopped with Ctrl-C.
`,
  hasOutputForms: true,
  run
}

const OPTIONS = {
  since: { type: 'string' },
  chart: { type: 'string' },
  json: { type: 'boolean' },
  output: { type: 'string', short: 'o' }
} as const

/** By the name of a format. */
const FORMATS = {
  text: (diff: AgentDiff, { colours }: Io) => diffText(diff, colours.stdout),
  json: (diff: AgentDiff) => diffJson(diff),
  markdown: (diff: AgentDiff) => diffMarkdown(diff),
  mermaid: (diff: AgentDiff) => mermaidOf(mergedOf(drawnIn(diff))),
  svg: (diff: AgentDiff) => drawMerged(mergedOf(drawnIn(diff)))
}

async function run(args: readonly string[], io: Io): Promise<number> {
  const {
    values: { since, chart, json = false, output = json ? 'json' : 'text' },
    positionals
  } = readOptions(args, OPTIONS)
  if (!isFormat(output)) throw usageError(`There is no -o ${output}. There are: ${Object.keys(FORMATS).join(', ')}.`)
  if (json && output !== 'json') throw usageError('Choose one of --json and -o.')
  const diff = chosenOf(
    since === undefined ? await ofTwo(positionals, io) : await ofRevision(positionals, since, io),
    chart
  )
  io.stdout.write(await FORMATS[output](diff, io))
  return exitCode(diff)
}

function isFormat(name: string): name is keyof typeof FORMATS {
  return Object.hasOwn(FORMATS, name)
}

async function ofTwo(positionals: readonly string[], io: Io): Promise<AgentDiff> {
  const [old, now] = readPositionals(positionals, ['OLD.ts|js', 'NEW.ts|js'])
  return diffAgents(await sideOf(old, io), await sideOf(now, io))
}

async function ofRevision(positionals: readonly string[], revision: string, io: Io): Promise<AgentDiff> {
  const [file] = readPositionals(positionals, ['AGENT.ts|js'])
  const now = await sideOf(file, io)
  return withWorktree(now.path, revision, io.signal, async ({ path, commit }) => {
    const diff = diffAgents(await sideOf(path, io), now)
    const note = `${file} at ${revision} (${commit.slice(0, 10)}) with the node_modules of today`
    return { ...diff, compared: [note, ...diff.compared] }
  })
}

async function sideOf(file: string, io: Io) {
  return { agent: (await loadUnlessStopped(file, io)).agent, path: resolve(io.cwd, file) }
}

function chosenOf(diff: AgentDiff, chart: string | undefined): AgentDiff {
  if (chart === undefined) return diff
  const charts = diff.charts.filter(one => one.chart === chart)
  if (charts.length > 0) return { ...diff, charts }
  const names = diff.charts.map(one => one.chart)
  throw new CommandError(
    `Both versions have no chart ${chart}. ${names.length === 0 ? 'They have none.' : `There are: ${names.join(', ')}.`}`
  )
}

/** The chart that is drawn. */
function drawnIn({ charts: [chart] }: AgentDiff): ChartDiff {
  if (!chart) throw new CommandError('There is no drawing: the work of both versions has to be a statechart.')
  return chart
}

function mergedOf({ before, after, marks }: ChartDiff) {
  return mergedChart(before, after, marks)
}

const CANNOT: readonly ChangeVerdict[] = ['never ends', 'not restored']

function exitCode({ charts, work }: AgentDiff): number {
  const verdicts = [
    ...charts.flatMap(({ configurations }) => configurations.map(({ verdict }) => verdict)),
    ...(work ? [work.verdict] : [])
  ]
  if (verdicts.some(verdict => CANNOT.includes(verdict))) return EXIT.unsuccessful
  return verdicts.every(verdict => verdict === 'same') ? EXIT.ok : EXIT.waiting
}
