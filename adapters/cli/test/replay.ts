import { inspect } from 'node:util'
import type { Agent } from '../../../runtime/index.ts'
import { dryRunRestore, type Outlook, type RestoreVerdict } from '../../../runtime/work-port.ts'
import type { StoreReader } from '../../rows/store-reader.ts'
import { readArguments } from '../arguments.ts'
import { EXIT, usageError, type Command, type Io } from '../command.ts'
import { loadUnlessStopped } from '../load-agent.ts'
import { openReader } from '../serve/parts.ts'
import { LiveLine } from '../text/live-line.ts'
import { jsonLine, oneLine, plain, styleText } from '../text/terminal.ts'

/** `taskchart replay`: checks before a deployment which stored tasks this agent can continue. */
export const replayCommand: Command = {
  usage: 'taskchart replay AGENT.ts|js --db FILE [--json]',
  details: `Tries to restore every unfinished task of the file with the agent. It starts no work and writes nothing, and works while a
server uses the file. Each task is a line on stdout, failures last:

  ok          it is restored unchanged
  migrates    the agent's migrate converts it
  runs again  a function or generator is replayed against its journal; only a run shows whether it is deterministic
  fails       it would end as failed, for this reason

  --db FILE  the file of taskchart serve --db
  --json     one line of JSON for each task: { tenant, principal, contextId, taskId, state, outlook, reason?, storedVersion? }

Exit codes: 0 all can continue, 1 an error, 2 wrong usage, 10 some would fail, 130 stopped with Ctrl-C.
`,
  run
}

const OPTIONS = { db: { type: 'string' }, json: { type: 'boolean' } } as const

async function run(args: readonly string[], io: Io): Promise<number> {
  const {
    values: { db, json = false },
    positionals: [file]
  } = readArguments(args, OPTIONS, ['AGENT.ts|js'])
  if (db === undefined) throw usageError('--db FILE is missing.')
  const { agent } = await loadUnlessStopped(file, io)
  const damaged = (message: string, details: Record<string, unknown>) =>
    io.stderr.write(`taskchart: ${plain(`${message} ${inspect(details)}`)}\n`)
  const store = await openReader(db, io.cwd, { warn: damaged, error: damaged })
  try {
    const verdicts = await allOf(agent, store, io)
    const lines = verdicts.toSorted((a, b) => Number(a.outlook === 'fails') - Number(b.outlook === 'fails'))
    for (const verdict of lines) io.stdout.write(json ? jsonLine(verdict) : lineOf(verdict, io.colours.stdout))
    io.stderr.write(`${summaryOf(verdicts)}\n`)
    return verdicts.some(({ outlook }) => outlook === 'fails') ? EXIT.unsuccessful : EXIT.ok
  } finally {
    await store.close()
  }
}

async function allOf(
  agent: Agent,
  store: StoreReader,
  { stderr, terminal, clock, signal }: Io
): Promise<RestoreVerdict[]> {
  const verdicts: RestoreVerdict[] = []
  const line =
    terminal && new LiveLine({ output: stderr, terminal, clock, text: () => `replaying: ${summaryOf(verdicts)}` })
  try {
    for await (const verdict of dryRunRestore(agent, store, await store.scopes())) {
      signal.throwIfAborted()
      verdicts.push(verdict)
    }
    return verdicts
  } finally {
    line?.end()
  }
}

function lineOf({ taskId, outlook, reason }: RestoreVerdict, hasColours: boolean): string {
  const mark = outlook.padEnd(10)
  return `${outlook === 'fails' ? styleText(hasColours, 'red', mark) : mark}  ${oneLine(taskId)}${reason === undefined ? '' : `: ${oneLine(reason)}`}\n`
}

/** A summary: `3 tasks: 2 ok, 1 fails`. */
function summaryOf(verdicts: readonly RestoreVerdict[]): string {
  const counts = new Map<Outlook, number>()
  for (const { outlook } of verdicts) counts.set(outlook, (counts.get(outlook) ?? 0) + 1)
  const total = verdicts.length === 1 ? '1 task' : `${verdicts.length} tasks`
  return counts.size === 0
    ? total
    : `${total}: ${Array.from(counts, ([outlook, count]) => `${count} ${outlook}`).join(', ')}`
}
