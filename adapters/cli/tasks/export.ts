import { lstat, open, rename, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { isA2AError } from '../../../machines/protocol/errors.ts'
import { taskMachine } from '../../../machines/task.machine.ts'
import type { Agent } from '../../../runtime/index.ts'
import { redactValue } from '../../../runtime/ports/logger.ts'
import type { Scope } from '../../../runtime/store/rows.ts'
import { type ChartParts, partsOf } from '../../../runtime/work-port.ts'
import { chartsOf } from '../../drawing/agent-charts.ts'
import { drawChart, drawMerged } from '../../drawing/chart-drawing.ts'
import { storyHtml } from '../../inspector/story/story-file.ts'
import { rebuiltTaskSteps } from '../../inspector/story/story.ts'
import { readOptions } from '../arguments.ts'
import { CommandError, EXIT, type Io, type Output, usageError } from '../command.ts'
import { loadUnlessStopped } from '../load-agent.ts'
import { LiveLine, plainReporter, type Reporter } from '../text/live-line.ts'
import { jsonLine, oneLine } from '../text/terminal.ts'
import { exportHistories } from './export-history.ts'
import { taskPicture } from './picture.ts'
import {
  FILTER_OPTIONS,
  type FoundTask,
  readPlace,
  SOURCE_OPTIONS,
  type CompleteTask,
  type TaskSource,
  withSource
} from './source.ts'
import { workSteps } from './work-steps.ts'

const OPTIONS = {
  ...SOURCE_OPTIONS,
  ...FILTER_OPTIONS,
  limit: { type: 'string' },
  out: { type: 'string' },
  html: { type: 'boolean' },
  svg: { type: 'boolean' },
  agent: { type: 'string' },
  history: { type: 'string' },
  redact: { type: 'boolean' }
} as const

/** The progress of an export. */
interface Counts {
  exported: number
  /** The error messages about unreadable tasks, without duplicates. */
  readonly failures: Set<string>
}

/** The options that choose or change histories. */
const HISTORY_ONLY = ['redact', 'limit', ...(Object.keys(FILTER_OPTIONS) as (keyof typeof FILTER_OPTIONS)[])] as const

/** `taskchart tasks export`: writes complete tasks as lines of JSON, or open ones as histories. */
export async function exportTasks(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = readOptions(args, OPTIONS)
  const { place, rest: ids } = readPlace(values, positionals, io.env)
  if (values.html === true && ids.length !== 1) throw usageError('--html exports one task. Give its id.')
  const alone = HISTORY_ONLY.find(option => values.history === undefined && values[option] !== undefined)
  if (alone !== undefined) throw usageError(`--${alone} is for --history DIR.`)
  if (values.svg === true && ids.length !== 1) throw usageError('--svg exports one task. Give its id.')
  if (values.svg === true && values.html === true)
    throw usageError('--html and --svg exclude each other. Give one of them.')
  if (values.agent !== undefined && values.svg !== true && values.html !== true)
    throw usageError('--agent is for --html and --svg.')
  const module = values.agent === undefined ? undefined : await loadUnlessStopped(values.agent, io)
  const chart = module && workChartIn(module.agent, values.agent)
  const counts: Counts = { exported: 0, failures: new Set() }
  const reporter = reporterFor(counts, values.history ?? values.out, io)
  const report = (message: string) => {
    if (counts.failures.has(message)) return
    counts.failures.add(message)
    reporter.print(`taskchart: ${oneLine(message)}`)
  }
  try {
    if (values.history !== undefined) {
      const exported = () => void (counts.exported += 1)
      await exportHistories(
        { ...values, history: values.history },
        place.agent ? undefined : place.db,
        ids,
        { report, exported },
        io
      )
    } else
      await withSource(place, report, io, async source => {
        const sink = values.out === undefined ? outputSink(io.stdout) : await fileSink(resolve(io.cwd, values.out))
        await writeAll(
          {
            source,
            ids,
            sink,
            counts,
            report,
            textOf:
              values.html === true
                ? id => taskStoryOf(source, id, chart)
                : values.svg === true
                  ? id => taskPictureOf(source, id, chart)
                  : async (id, scope) => lineOf(await source.read(id, scope))
          },
          io.signal
        )
      })
  } finally {
    reporter.end()
  }
  io.stderr.write(`${summary(counts, values.history)}.\n`)
  return counts.failures.size === 0 ? EXIT.ok : EXIT.error
}

interface Export {
  readonly source: TaskSource
  /** The tasks to export. Empty: all. */
  readonly ids: readonly string[]
  readonly sink: LineSink
  readonly counts: Counts
  readonly report: (message: string) => void
  /** Returns the exported text of a task. */
  readonly textOf: (taskId: string, scope: Scope | undefined) => Promise<string>
}

async function writeAll({ source, ids, sink, counts, report, textOf }: Export, signal: AbortSignal): Promise<void> {
  let isWhole = false
  try {
    for await (const { id, scope } of ids.length > 0
      ? ids.map(id => ({ id, scope: undefined }))
      : idsOf(source.all())) {
      signal.throwIfAborted()
      try {
        await sink.write(await textOf(id, scope))
        counts.exported += 1
      } catch (error) {
        // A task that was listed and is missing now has been deleted meanwhile.
        if (isA2AError(error) && error.code === 'TaskNotFound' && ids.length === 0) continue
        if (!isA2AError(error) || !(error.code === 'TaskNotFound' || error.code === 'InternalError')) throw error
        report(error.message)
      }
    }
    isWhole = true
  } finally {
    await sink.end(isWhole)
  }
}

async function* idsOf(tasks: AsyncIterable<FoundTask>) {
  for await (const {
    task: { id },
    scope
  } of tasks)
    yield { id, scope }
}

function lineOf({ scope, events, ...others }: CompleteTask): string {
  return jsonLine({
    ...scope,
    ...others,
    ...(events && { events: events.map(({ generation, update }) => ({ generation, ...update })) })
  })
}

/** A live line and results would overwrite each other on one terminal. */
function reporterFor(
  counts: Counts,
  out: string | undefined,
  { stderr: output, terminal, screen, clock }: Io
): Reporter {
  if (!terminal || (screen && out === undefined)) return plainReporter(output)
  return new LiveLine({ output, terminal, clock, text: () => `exporting: ${summary(counts)}` })
}

/** `2 tasks exported to histories, 1 left out`. */
function summary({ exported, failures: { size: failed } }: Counts, folder?: string): string {
  const to = folder === undefined ? '' : ` to ${folder}`
  return `${exported === 1 ? '1 task' : `${exported} tasks`} exported${to}${failed === 0 ? '' : `, ${failed} left out`}`
}

/**
 * Writes lines one at a time, each after the previous one is flushed, so that a slow reader does not fill the memory.
 */
interface LineSink {
  write(line: string): Promise<void>
  /** Called once, at the end. `isWhole` is false if lines are missing. */
  end(isWhole: boolean): Promise<void>
}

/** Writes lines to an output of the process. */
export function outputSink(output: Output): LineSink {
  return { write: line => new Promise(resolve => output.write(line, resolve)), end: async () => {} }
}

/**
 * Writes lines to a new file. It gets its name when it is whole, so that neither a full disk nor a kill leaves a part
 * with that name. Throws if the file exists.
 */
async function fileSink(path: string): Promise<LineSink> {
  const draft = `${path}.${process.pid}.part`
  const unwritten = (cause: Error): never => {
    throw new CommandError(`${path} cannot be written: ${cause.message}. Give another name with --out.`, { cause })
  }
  await refuseExisting(path)
  const file = await open(draft, 'w').catch(unwritten)
  return {
    write: line => file.appendFile(line).catch(unwritten),
    end: async isWhole => {
      try {
        await file.close()
        if (!isWhole) return
        await refuseExisting(path)
        await rename(draft, path)
      } finally {
        await rm(draft, { force: true })
      }
    }
  }
}

async function refuseExisting(path: string): Promise<void> {
  const isInUse = await lstat(path).then(
    () => true,
    () => false
  )
  if (isInUse) throw new CommandError(`${path} exists, and files are never overwritten. Give another name with --out.`)
}

/**
 * The story of a task as an HTML file, with the chart of its work if that is known, and the task's own, both rebuilt
 * from its events.
 */
export async function taskStoryOf(source: TaskSource, taskId: string, given?: ChartParts): Promise<string> {
  const { task, events, scope } = await readWithEvents(source, taskId)
  const work = given ?? (scope && (await source.workChart?.(taskId, scope)))
  return storyHtml(
    {
      task,
      before: (scope && (await source.before?.(task, scope))) ?? [],
      events,
      work: work && {
        title: 'The work',
        svg: await drawMerged({ chart: work.chart, marks: new Map() }),
        steps: workSteps(work, events),
        isRebuilt: true
      },
      charts: [{ title: 'A task', svg: await drawChart(taskMachine), steps: rebuiltTaskSteps(events), isRebuilt: true }]
    },
    redactValue
  )
}

async function readWithEvents(
  source: TaskSource,
  taskId: string
): Promise<CompleteTask & Pick<Required<CompleteTask>, 'events'>> {
  const found = await source.read(taskId)
  const { generation, events } = found
  // An agent that numbers no events cannot send them again.
  const known = events ?? (generation === undefined ? [] : await source.events?.(taskId, generation)) ?? []
  return { ...found, events: known }
}

/** A task as a moving SVG, with the chart of its work if that is known, else with the task's own. */
async function taskPictureOf(source: TaskSource, taskId: string, given: ChartParts | undefined): Promise<string> {
  const { task, events, scope } = await readWithEvents(source, taskId)
  const work = given ?? (scope && (await source.workChart?.(taskId, scope)))
  return taskPicture({
    task,
    events,
    svg: work ? await drawMerged({ chart: work.chart, marks: new Map() }) : await drawChart(taskMachine),
    steps: work ? workSteps(work, events) : rebuiltTaskSteps(events)
  })
}

function workChartIn(agent: Agent, file: string | undefined): ChartParts {
  const chart = chartsOf(agent).find(({ id }) => id === 'work')
  if (chart) return partsOf(chart.machine)
  throw new CommandError(`The work of ${file} is no chart. Leave --agent out: then the chart of the task is drawn.`)
}
