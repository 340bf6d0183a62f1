import { relative, resolve } from 'node:path'
import type { FailedWalk } from '../../inspector/test-result.ts'
import type { PathTest, CoverageGap } from '../../testing/agent-tests.ts'
import type { ReachedParts } from '../../testing/coverage.ts'
import {
  differenceText,
  failsTest,
  historyFiles,
  type HistoryOutcome,
  replayFiles
} from '../../testing/histories/replay-histories.ts'
import { DrawError } from '../../testing/plan/made-cases.ts'
import { isUrl, readArguments } from '../arguments.ts'
import { CommandError, EXIT, usageError, type Command, type Io } from '../command.ts'
import { coverageFile } from '../files.ts'
import { loadUnlessStopped } from '../load-agent.ts'
import { ACCESS_HELP, ACCESS_OPTIONS, ENVIRONMENT_HELP } from '../talk/agent-connection.ts'
import { tapComments, tapHead, tapPoint } from '../text/format.ts'
import { counter } from '../text/live-line.ts'
import { oneLine, plain, shellText, shellWord, styleText } from '../text/terminal.ts'
import { testServerCommand } from './test-server.ts'
import { BOUND_FLAGS, boundsHelp, loadPlanning, planError, readBounds, readKind } from './testing.ts'

/** `taskchart test`: tests every path of an agent, or a server at a URL. */
export const testCommand: Command = {
  usage: [
    'taskchart test AGENT.ts|js [--paths KIND] [--only TEXT] [--driver TEXT]… [--complete] [--limit NUMBER] [--time SECONDS] [--memory MB] [--strict] [--tap]',
    'taskchart test AGENT.ts|js --histories DIR [--strict] [--tap]',
    'taskchart test URL [--text TEXT]… [--api-key KEY] [--header NAME:VALUE]… [--credential-origin ORIGIN]… [--binding NAME]… [--wait SECONDS] [--only TEXT] [--tap]'
  ],
  details: `AGENT: walks every path of taskchart paths: with the chart alone, live and restored from JSON before every step; in a
runtime in this process, also restarted and killed before every step; and over the wire. Time is virtual, and the actors
that the chart invokes end as the module's cases say. Failures are written to stdout, each with the command that runs it
alone. At the end come the parts of the chart that were not reached, with the reason, the number of passed tests, and
what was not tested because a package is not installed.
Coverage and failed paths are saved beside the module, in .taskchart, for the page of taskchart dev.

  --paths KIND    cover (the default), shortest or simple, as taskchart paths has them
  --only TEXT     only paths whose name contains this text
  --driver TEXT   only drivers whose name contains this text, such as "WebSocket"; may be given more than once
${boundsHelp(1000, 15)}  --complete      walk every path on SQLite too; the default is those that visit each configuration, since it is slow
  --strict        also fail, with code 10, if a part of the chart was not reached or the chart throws on a path

AGENT with --histories: replays open tasks of a store, which taskchart tasks export --history has written, and walks no paths.
A function or generator runs from its start to where its task stands, by its journal. A chart is restored, and what it
asks and waits for is compared. No step, actor or sleep runs; earlier and migrate are applied. Code outside steps runs.
A file is "same", or it is written to stdout with both sides:

  diverges        the work does something else: at this word, step or state
  not restored    the task would fail when it is restored, for this reason
  other answer    the question that the task waits for has another schema
  otherwise       words that clients have seen have another content now
  cannot say      the work has read redacted values, or what the history does not have
  unreadable      the file is cut or damaged, no history, or one of a newer format

  --histories DIR  the folder with the histories
  --strict        also fail, with code 10, for "otherwise" and "cannot say"

URL: tests a server against the requirements of A2A 1.0, over each binding that its card offers. A chart of the protocol chooses
what to send in each state of a task. Nothing is known about the agent, so its answers decide what can be tested. A
requirement is met, not met, or skipped with a reason. An unmet MUST fails; an unmet SHOULD, or what A2A leaves open,
is a warning. The test creates tasks, and cancels those that still run at the end.

  --text TEXT     send this text; may be given more than once. Default: up to five examples of the card's skills, or "hello"
${ACCESS_HELP}  --binding NAME  only over WEBSOCKET, JSONRPC, HTTP+JSON or GRPC; may be given more than once
  --wait SECONDS  the time limit of an answer; default 10
  --only TEXT     report only requirements whose name contains this text, such as "JSONRPC: 27 "

${ENVIRONMENT_HELP}
  --tap           write TAP to stdout instead

Exit codes: 0 all passed, 1 an error, 2 wrong usage, 3 the server was not reached, 4 it
refuses the credentials, 10 some failed, 11 a bound is met, 130 stopped with Ctrl-C.
`,
  run
}

const AGENT_OPTIONS = {
  paths: { type: 'string', default: 'cover' },
  only: { type: 'string' },
  driver: { type: 'string', multiple: true },
  complete: { type: 'boolean' },
  ...BOUND_FLAGS,
  strict: { type: 'boolean' },
  histories: { type: 'string' },
  tap: { type: 'boolean' }
} as const

const SERVER_OPTIONS = {
  only: { type: 'string' },
  tap: { type: 'boolean' },
  text: { type: 'string', multiple: true },
  ...ACCESS_OPTIONS,
  binding: { type: 'string', multiple: true },
  wait: { type: 'string' }
} as const

/** The result of a test. */
interface Outcome {
  readonly test: PathTest
  readonly failure?: string
  /** The number of the step at which it ended. */
  readonly at: number
}

async function run(args: readonly string[], io: Io): Promise<number> {
  if (!args.some(isUrl)) return testAgentFile(args, io)
  const {
    values,
    positionals: [url]
  } = readArguments(args, SERVER_OPTIONS, ['URL'])
  return testServerCommand(url, values, io)
}

async function testAgentFile(args: readonly string[], io: Io): Promise<number> {
  const {
    values: { paths, only, driver: texts, complete, strict, histories, tap, ...bounds },
    positionals: [file]
  } = readArguments(args, AGENT_OPTIONS, ['AGENT.ts|js, or the URL of a server,'])
  if (histories !== undefined) {
    const other = Object.entries({ only, driver: texts, complete, ...bounds }).find(([, value]) => value !== undefined)
    if (other) throw usageError(`--${other[0]} is for paths, and --histories walks none. Leave one of them out.`)
    return testHistories(file, histories, { strict, tap }, io)
  }
  const { agent, cases } = await loadUnlessStopped(file, io)
  await loadPlanning()
  const { agentTests, explainFailure } = await import('../../testing/agent-tests.ts')
  const { allDrivers } = await import('../../testing/run/drivers.ts')
  const kind = readKind(paths)
  const drivers = texts && allDrivers.filter(driver => texts.some(text => driver.includes(text)))
  if (drivers?.length === 0)
    throw usageError(`No driver's name contains that --driver. The drivers are: ${allDrivers.join('; ')}.`)
  if (strict && only !== undefined) throw usageError('--strict needs every path. Leave out --only.')
  const {
    tests,
    notes,
    lacks: unwalked,
    reached,
    shortfall
  } = await agentTests(agent, {
    kind,
    ...readBounds(bounds),
    ...(complete && { complete }),
    ...(drivers && { drivers }),
    ...(cases && { cases }),
    ...(only !== undefined && { only })
  }).catch(planError(file, agent.card))
  if (strict && !shortfall() && typeof agent.work === 'object')
    throw usageError('--strict needs a driver that walks the chart alone. Add --driver "the chart".')
  const aloneOf = ({ driver, name }: PathTest) =>
    `npx taskchart test ${shellWord(file)} ${kind === 'cover' ? '' : `--paths ${kind} `}--driver ${shellText(driver)} --only ${shellText(name)}`
  if (tap) io.stdout.write(tapHead(tests.length))
  const textOf = (outcome: Outcome, number: number) =>
    tap
      ? tapPoint({ name: nameOf(outcome), failure: outcome.failure }, number)
      : failureText(outcome, aloneOf(outcome.test), io.colours.stdout)
  const explained = (error: unknown) =>
    error instanceof DrawError ? planError(file, agent.card)(error) : explainFailure(error)
  const outcomes = await outcomesOf(tests, explained, io, textOf)
  const walks = outcomes.flatMap(({ test, failure, at }) =>
    failure === undefined
      ? []
      : [
          {
            name: test.name,
            driver: test.driver,
            message: failure.slice(0, LONGEST_FAILURE),
            alone: aloneOf(test),
            steps: test.steps(),
            at
          }
        ]
  )
  await keepReached(resolve(io.cwd, file), reached(), walks.slice(0, MOST_WALKS), io)
  const failed = outcomes.filter(({ failure }) => failure !== undefined).length
  const lacks = lacksOf(shortfall())
  if (tap) io.stdout.write(tapComments([...notes(), ...lacks, ...unwalked]))
  else
    io.stdout.write(
      `${notes()
        .map(note => `${oneLine(note)}\n`)
        .join(
          ''
        )}${styleText(io.colours.stdout, failed === 0 ? 'green' : 'red', [`${outcomes.length - failed} passed, ${failed} failed`, ...lacks].join(', '))}\n${unwalked.map(line => `${oneLine(line)}\n`).join('')}`
    )
  return failed === 0 && !(strict && lacks.length > 0) ? EXIT.ok : EXIT.unsuccessful
}

/** The last lines of a summary: gaps in the coverage, and charts that throw. */
function lacksOf({ missing, crashes }: CoverageGap = { missing: [], crashes: 0 }): string[] {
  return [
    ...(missing.length > 0 ? [`${missing.length} not reached`] : []),
    ...(crashes > 0 ? [`${crashes} where the chart throws`] : [])
  ]
}

/** The number of failed walks that are saved, and the length of each failure. */
const MOST_WALKS = 20
const LONGEST_FAILURE = 4000

/** Saves the coverage of the chart, and the failed walks, for the page of `taskchart dev`. */
async function keepReached(
  module: string,
  reached: ReachedParts | undefined,
  failed: readonly FailedWalk[],
  { clock, stderr }: Io
): Promise<void> {
  const written = reached && coverageFile(module).write({ atMs: clock.now(), ...reached, failed })
  await written?.catch((error: Error) =>
    stderr.write(`taskchart: the coverage could not be saved: ${oneLine(error.message)}\n`)
  )
}

/** Runs the tests. The text of each outcome is written at once. */
async function outcomesOf(
  tests: readonly PathTest[],
  explained: (error: unknown) => never,
  { stdout, stderr, terminal, clock, signal }: Io,
  textOf: (outcome: Outcome, number: number) => string
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  let failures = 0
  let now = ''
  const line = counter({
    output: stderr,
    terminal,
    clock,
    text: () => `${outcomes.length} of ${tests.length}${failures === 0 ? '' : `, ${failures} failed`}: ${oneLine(now)}`
  })
  try {
    for (const test of tests) {
      signal.throwIfAborted()
      now = test.name
      let at = 0
      const failure = await test
        .walk(step => (at = step))
        .catch(explained)
        .then(() => undefined, failureIn)
      const outcome = { test, at, ...(failure !== undefined && { failure }) }
      outcomes.push(outcome)
      if (failure !== undefined) failures += 1
      const text = textOf(outcome, outcomes.length)
      if (text === '') continue
      line.erase()
      stdout.write(text)
    }
    return outcomes
  } finally {
    line.end()
  }
}

/** The text of a failure. What concerns all tests ends the command. */
function failureIn(error: unknown): string {
  if (error instanceof CommandError) throw error
  return (error as Error).message
}

function nameOf({ test: { driver, name } }: Outcome): string {
  return `${driver}: ${name}`
}

/** A failure with the command that runs its test alone; empty for a test that passed. */
function failureText(outcome: Outcome, alone: string, hasColours: boolean): string {
  return outcome.failure === undefined
    ? ''
    : `${styleText(hasColours, 'red', oneLine(nameOf(outcome)))}\n${plain(outcome.failure).replaceAll(/^/gm, '  ')}\n  alone: ${alone}\n\n`
}

/** `taskchart test --histories`: replays stored tasks with an agent. */
async function testHistories(
  file: string,
  folder: string,
  { strict = false, tap = false }: { readonly strict?: boolean | undefined; readonly tap?: boolean | undefined },
  io: Io
): Promise<number> {
  const { agent } = await loadUnlessStopped(file, io)
  const files = await historyFiles(resolve(io.cwd, folder)).catch((error: TypeError) => {
    throw new CommandError(error.message, { cause: error })
  })
  const counts = new Map<HistoryOutcome, number>()
  let [number, failed] = [0, 0]
  if (tap) io.stdout.write(tapHead(files.length))
  for await (const replay of replayFiles(agent, files)) {
    io.signal.throwIfAborted()
    const fails = failsTest(replay, strict)
    number += 1
    failed += Number(fails)
    counts.set(replay.outcome, (counts.get(replay.outcome) ?? 0) + 1)
    const name = relative(io.cwd, replay.file)
    const text = `${replay.outcome}: ${differenceText(replay)}`
    if (tap)
      io.stdout.write(
        tapPoint(
          { name: replay.outcome === 'same' ? name : `${name}: ${text}`, ...(fails && { failure: text }) },
          number
        )
      )
    else if (replay.outcome !== 'same')
      io.stdout.write(
        `${styleText(io.colours.stdout, fails ? 'red' : 'yellow', `${oneLine(name)}  ${replay.outcome}`)}\n  ${oneLine(differenceText(replay))}\n`
      )
  }
  if (!tap) io.stdout.write(`${styleText(io.colours.stdout, failed === 0 ? 'green' : 'red', summaryOf(counts))}\n`)
  return failed === 0 ? EXIT.ok : EXIT.unsuccessful
}

/** `3 histories: 2 same, 1 diverges`. */
function summaryOf(counts: ReadonlyMap<HistoryOutcome, number>): string {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  return `${total === 1 ? '1 history' : `${total} histories`}: ${Array.from(counts, ([outcome, count]) => `${count} ${outcome}`).join(', ')}`
}
