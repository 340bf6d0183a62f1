import { inspect } from 'node:util'
import { drawMerged } from '../../drawing/chart-drawing.ts'
import { mergedChart } from '../../drawing/merged-chart.ts'
import { mermaidOf } from '../../drawing/mermaid.ts'
import { type AgentDiff, type ChartDiff, diffAgents } from '../../testing/diff/agent-diff.ts'
import { diffStored, type StoredDiff, type TaskVerdict } from '../../testing/diff/stored-diff.ts'
import type { StoredVerdict } from '../../testing/diff/verdicts.ts'
import { readOptions, readPositionals } from '../arguments.ts'
import { CommandError, EXIT, usageError, type Command, type Io } from '../command.ts'
import { loadUnlessStopped } from '../load-agent.ts'
import { openReader } from '../stores.ts'
import { LiveLine } from '../text/live-line.ts'
import { jsonLine, plain } from '../text/terminal.ts'
import { diffHtml, storedDiffHtml } from './diff-html.ts'
import { diffJson, diffMarkdown, diffText, storedDiffJson, storedDiffMarkdown, storedDiffText } from './diff-text.ts'
import { withRevision } from './revision.ts'

/** `taskchart diff`: what a change of an agent means for the tasks that are open. */
export const diffCommand: Command = {
  usage: [
    'taskchart diff OLD.ts|js NEW.ts|js [-o FORMAT | --json] [--chart NAME]',
    'taskchart diff AGENT.ts|js --since REVISION [-o FORMAT | --json] [--chart NAME]',
    'taskchart diff --db FILE|URL NEW.ts|js [-o FORMAT | --json] [--chart NAME]'
  ],
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

With --db it compares every open task, also while a server uses the file or database: each with the definition that it was stored
with, by its configuration. Each is restored, and migrated if the agent has migrate. Its tasks without a definition, which are
older than definitions, have the verdict "not compared" if they are restored. A function or a generator whose code has changed runs
with the journal of each task, up to where that is: no step and no actor is started, but other code of it runs. You see the word
at which it differs, with both sides. Nothing is written.

  --since REVISION  compare with the module at a revision of git, in a folder that has the node_modules of today
  --db FILE|URL     compare the open tasks of a file or database of taskchart serve --db
  -o FORMAT         text (the default), json, markdown (for a comment on a pull request), html (needs elkjs): one file with the charts
                    before and now side by side, which needs no network; mermaid, or svg (needs elkjs): the chart of now with
                    what is new, gone and changed
  --json            the same as -o json: one document
  -o lines          with --db: one line of JSON for each task: { tenant, principal, contextId, taskId, state, verdict, reasons,
                    configuration, version?, definition?, isMigrated?, word?, before?, after? }
  --chart NAME      only this chart: work, or child:NAME for an actor of the work. mermaid and svg draw one; default work

Exit codes: 0 all go on the same way, 1 an error, 2 wrong usage, 10 some cannot go on, 11 some go on otherwise, or it cannot be
said, 130 stopped with Ctrl-C.
`,
  hasOutputForms: true,
  run
}

const OPTIONS = {
  since: { type: 'string' },
  db: { type: 'string' },
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
  svg: (diff: AgentDiff) => drawMerged(mergedOf(drawnIn(diff))),
  html: (diff: AgentDiff) => diffHtml(diff)
}

async function run(args: readonly string[], io: Io): Promise<number> {
  const {
    values: { since, db, chart, json = false, output = json ? 'json' : 'text' },
    positionals
  } = readOptions(args, OPTIONS)
  if (json && output !== 'json') throw usageError('Choose one of --json and -o.')
  if (db !== undefined) {
    if (since !== undefined) throw usageError('--since and --db exclude each other. Give one of them.')
    return printStored(db, positionals, output, chart, io)
  }
  if (!isFormat(output)) throw usageError(`There is no -o ${output}. There are: ${Object.keys(FORMATS).join(', ')}.`)
  const diff = chosenOf(
    since === undefined ? await ofTwo(positionals, io) : await ofRevision(positionals, since, io),
    chart
  )
  io.stdout.write(await FORMATS[output](diff, io))
  return exitCode(diff)
}

/** By the name of a format. */
const STORED_FORMATS = {
  text: (diff: StoredDiff, { colours }: Io) => storedDiffText(diff, colours.stdout),
  json: (diff: StoredDiff) => storedDiffJson(diff),
  markdown: (diff: StoredDiff) => storedDiffMarkdown(diff),
  mermaid: (diff: StoredDiff, _: Io, chart?: string) => mermaidOf(mergedOf(drawnIn(mostUsed(diff, chart)))),
  svg: (diff: StoredDiff, _: Io, chart?: string) => drawMerged(mergedOf(drawnIn(mostUsed(diff, chart)))),
  html: (diff: StoredDiff) => storedDiffHtml(diff),
  // Each task is written when it has its verdict.
  lines: () => ''
}

/** Compares the open tasks of a store. */
async function printStored(
  db: string,
  positionals: readonly string[],
  output: string,
  chart: string | undefined,
  io: Io
): Promise<number> {
  if (!isStoredFormat(output))
    throw usageError(`There is no -o ${output}. There are: ${Object.keys(STORED_FORMATS).join(', ')}.`)
  const [file] = readPositionals(positionals, ['NEW.ts|js'])
  const module = await loadUnlessStopped(file, io)
  const damaged = (message: string, details: Record<string, unknown>) =>
    io.stderr.write(`taskchart: ${plain(`${message} ${inspect(details)}`)}\n`)
  const reader = await openReader(db, io.cwd, { warn: damaged, error: damaged })
  let tasks = 0
  const { terminal, stderr, clock } = io
  const line = terminal && new LiveLine({ output: stderr, terminal, clock, text: () => `comparing: ${tasks} tasks` })
  try {
    const onTask = (verdict: TaskVerdict) => {
      tasks += 1
      if (output === 'lines') io.stdout.write(jsonLine(verdict))
    }
    const diff = await diffStored(reader, module, { signal: io.signal, onTask }).finally(() => line?.end())
    io.stdout.write(await STORED_FORMATS[output](diff, io, chart))
    return codeOf(diff.definitions.flatMap(({ groups }) => groups.map(({ verdict }) => verdict)))
  } finally {
    await reader.close()
  }
}

function isStoredFormat(name: string): name is keyof typeof STORED_FORMATS {
  return Object.hasOwn(STORED_FORMATS, name)
}

/** The comparison of the definition with most tasks, which is drawn. */
function mostUsed({ definitions }: StoredDiff, chart: string | undefined): AgentDiff {
  const found = definitions.find(({ diff }) => diff)?.diff
  if (!found) throw new CommandError('There is no drawing: no open task has a definition in the store.')
  return chosenOf(found, chart)
}

function isFormat(name: string): name is keyof typeof FORMATS {
  return Object.hasOwn(FORMATS, name)
}

async function ofTwo(positionals: readonly string[], io: Io): Promise<AgentDiff> {
  const [old, now] = readPositionals(positionals, ['OLD.ts|js', 'NEW.ts|js'])
  return diffAgents(await loadUnlessStopped(old, io), await loadUnlessStopped(now, io))
}

async function ofRevision(positionals: readonly string[], revision: string, io: Io): Promise<AgentDiff> {
  const [file] = readPositionals(positionals, ['AGENT.ts|js'])
  const now = await loadUnlessStopped(file, io)
  return withRevision(now.path, revision, io.signal, async ({ path, commit }) => {
    const diff = diffAgents(await loadUnlessStopped(path, io), now)
    const note = `${file} at ${revision} (${commit.slice(0, 10)}) with the node_modules of today`
    return { ...diff, compared: [note, ...diff.compared] }
  })
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

const CANNOT: readonly StoredVerdict[] = ['never ends', 'not restored']

function exitCode({ charts, work }: AgentDiff): number {
  return codeOf([
    ...charts.flatMap(({ configurations }) => configurations.map(({ verdict }) => verdict)),
    ...(work ? [work.verdict] : [])
  ])
}

function codeOf(verdicts: readonly StoredVerdict[]): number {
  if (verdicts.some(verdict => CANNOT.includes(verdict))) return EXIT.unsuccessful
  return verdicts.every(verdict => verdict === 'same') ? EXIT.ok : EXIT.waiting
}
