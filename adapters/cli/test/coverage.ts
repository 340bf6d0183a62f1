import { resolve } from 'node:path'
import { chartVersion } from '../../../runtime/work-port.ts'
import { type AgentChart, chartsOf, type Heat, heatOf } from '../../drawing/agent-charts.ts'
import { readArguments } from '../arguments.ts'
import { CommandError, EXIT, usageError, type Command, type Io } from '../command.ts'
import { lineWriter } from '../db.ts'
import { coverageFile } from '../files.ts'
import { loadUnlessStopped } from '../load-agent.ts'
import { openReader } from '../stores.ts'
import { tableLines } from '../text/format.ts'
import { jsonLine, oneLine } from '../text/terminal.ts'

/** `taskchart coverage`: shows which transitions tasks took. */
export const coverageCommand: Command = {
  usage: ['taskchart coverage AGENT.ts|js --db FILE|URL [--pairs] [--json]'],
  details: `Lists the transitions of the agent's chart, and of the charts that it starts, with how often the tasks in the file or
database took them; those that no task took come first. Then it lists the mean time in each state before it was left, as
far as one process saw both ends of it. If taskchart test has written what its paths take, the transitions that no test
takes are marked. It reads while a server runs, which adds its counts once a second; a kill loses those of the last
second. A chart whose structure has changed has counts of its own.

  --db FILE|URL the file or database of taskchart serve --db
  --pairs       also the pairs of transitions that followed each other
  --json        one line of JSON for each chart: { chart, version, transitions, states, pairs }; tested is there if it is known

Exit codes: 0 shown, 1 an error, 2 wrong usage.
`,
  run
}

const OPTIONS = { db: { type: 'string' }, pairs: { type: 'boolean' }, json: { type: 'boolean' } } as const

async function run(args: readonly string[], { stdout, stderr, cwd, signal }: Io): Promise<number> {
  const {
    values: { db, pairs, json },
    positionals: [file]
  } = readArguments(args, OPTIONS, ['AGENT.ts|js'])
  if (db === undefined) throw usageError('Say where the tasks are: --db agent.db')
  const { agent } = await loadUnlessStopped(file, { cwd, signal })
  const charts = chartsOf(agent).filter(({ id }) => id === 'work' || id.startsWith('child:'))
  if (charts.length === 0)
    throw new CommandError(`${oneLine(agent.card.name)} has no chart of its own: its work is a function.`)
  const tested = (await coverageFile(resolve(cwd, file)).read())?.reached.transitions
  const report = lineWriter(stderr)
  const reader = await openReader(db, cwd, { warn: report, error: report })
  try {
    for (const chart of charts) {
      const version = chartVersion(chart.machine)
      const heat = heatOf(chart.machine, await reader.readTransitions(version))
      const known = chart.id === 'work' ? tested : undefined
      stdout.write(
        json
          ? jsonLine({ chart: chart.id, version, ...withTests(heat, known) })
          : text(chart, withTests(heat, known), pairs === true)
      )
    }
  } finally {
    await reader.close()
  }
  return EXIT.ok
}

function withTests(heat: Heat, tested: readonly string[] | undefined): Heat {
  if (!tested) return heat
  return { ...heat, transitions: heat.transitions.map(one => ({ ...one, tested: tested.includes(one.name) })) }
}

function text({ id }: AgentChart, { transitions, states, pairs }: Heat, hasPairs: boolean): string {
  const used = transitions.filter(({ count }) => count > 0)
  const rows = transitions
    .toSorted((a, b) => Number(a.count > 0) - Number(b.count > 0))
    .map(({ name, count, tested }) => [String(count), `${oneLine(name)}${tested === false ? ' (no test)' : ''}`])
  const tables = [
    [['TAKEN', 'TRANSITION'], ...rows],
    ...(states.length > 0
      ? [
          [
            ['WAITS', 'MEAN', 'STATE'],
            ...states.map(({ state, waits, meanMs }) => [String(waits), `${meanMs} ms`, oneLine(state)])
          ]
        ]
      : []),
    ...(hasPairs
      ? [
          [
            ['TAKEN', 'PAIR'],
            ...pairs.map(({ previous, taken, count }) => [
              String(count),
              `${oneLine(previous)}, then ${oneLine(taken)}`
            ])
          ]
        ]
      : [])
  ]
  return `${id}: ${used.length} of ${transitions.length} transitions were taken\n${tables.map(table => `${tableLines(table).join('\n')}\n`).join('\n')}`
}
