import { chartMermaid } from '../../drawing/mermaid.ts'
import { describeBargainMove } from '../../testing/negotiation/model.ts'
import { describeMove } from '../../testing/plan/moves.ts'
import { readArguments } from '../arguments.ts'
import { EXIT, usageError, type Command, type Io } from '../command.ts'
import { loadUnlessStopped } from '../load-agent.ts'
import { jsonLine, oneLine } from '../text/terminal.ts'
import { BOUND_FLAGS, boundsHelp, loadPlanning, planError, readBounds, readKind } from './testing.ts'

/** `taskchart paths`: lists the paths that `taskchart test` walks. */
export const pathsCommand: Command = {
  usage: [
    'taskchart paths AGENT.ts|js [--paths KIND] [--only TEXT] [--limit NUMBER] [--time SECONDS] [--memory MB] [--json | --mermaid]'
  ],
  details: `Writes one line to stdout for each path: every move that the agent's work accepts, in each configuration that it can
reach; a cancel there; and what it must refuse there. For a negotiation(…): everything that can happen before there is a
task. The module's export cases supplies the inputs (taskchart/testing). If the work is not a statechart, the paths come
from a model of such work.

  --paths KIND   cover (the default) is all of that; shortest, the shortest way to each configuration; simple, every way
                 without a repeated configuration
${boundsHelp(1000, 14)}  --only TEXT    only paths whose name contains this text
  --json         one line of JSON for each path: { path, steps: [{ move, told } or { move, refused }] }
  --mermaid      the chart as mermaid text instead

Exit codes: 0 shown, 1 an error, 2 wrong usage, 11 a bound is met.
`,
  run
}

const OPTIONS = {
  paths: { type: 'string', default: 'cover' },
  only: { type: 'string' },
  ...BOUND_FLAGS,
  json: { type: 'boolean' },
  mermaid: { type: 'boolean' }
} as const

async function run(args: readonly string[], { stdout, stderr, cwd, signal }: Io): Promise<number> {
  const {
    values: { paths: text, only = '', json, mermaid, ...bounds },
    positionals: [file]
  } = readArguments(args, OPTIONS, ['AGENT.ts|js'])
  if (json && mermaid) throw usageError('Give --json or --mermaid, not both.')
  const { agent, cases } = await loadUnlessStopped(file, { cwd, signal })
  const { chartOf, planFor } = await loadPlanning()
  const kind = readKind(text)
  if (mermaid) {
    stdout.write(chartMermaid(chartOf(agent).machine))
    return EXIT.ok
  }
  const { paths, bargains, configurations } = await planFor(agent, {
    kind,
    ...readBounds(bounds),
    ...(cases && { cases })
  }).catch(planError(file, agent.card))
  const chosen = paths.filter(({ name }) => name.includes(only))
  for (const { name, begins, steps } of chosen) {
    const shown = steps.map(({ move, told, refusal }) => ({
      move: describeMove(move),
      ...(refusal === undefined ? { told } : { refused: refusal })
    }))
    stdout.write(json ? jsonLine({ path: name, begins, steps: shown }) : `${oneLine(name)}\n`)
  }
  const chosenBargains = bargains.filter(({ name }) => name.includes(only))
  for (const { name, steps } of chosenBargains) {
    const shown = steps.map(({ move, heard }) => ({ move: describeBargainMove(move), heard }))
    stdout.write(json ? jsonLine({ path: name, steps: shown }) : `${oneLine(name)}\n`)
  }
  stderr.write(`${chosen.length + chosenBargains.length} paths through ${configurations} configurations\n`)
  return EXIT.ok
}
