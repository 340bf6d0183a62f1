import { resolve } from 'node:path'
import { coverageFile } from '../inspector/coverage-file.ts'
import type { PathTest } from '../testing/agent-tests.ts'
import type { Reached } from '../testing/coverage.ts'
import { readArguments } from './arguments.ts'
import { EXIT, usageError, type Command, type Io } from './command.ts'
import { LiveLine } from './live-line.ts'
import { loadAgent } from './load-agent.ts'
import { oneLine, plain, shellText, shellWord } from './terminal-text.ts'
import { loadTesting, planError } from './testing.ts'

/** `taskchart test`: tests every path of an agent. */
export const testCommand: Command = {
  name: 'test',
  summary: "test every path through an agent's chart",
  usage: 'taskchart test AGENT.ts|js [--only TEXT] [--way TEXT]… [--tap]',
  details: `Walks every path that taskchart paths shows: with the chart alone, live and restored from JSON before every step; in a
runtime in this process, also restarted and killed before every step; and over the wire. Time is virtual, and the actors
that the chart invokes end as the module's cases say. What fails is written to stdout, with the line that runs it alone;
at the end comes what of the chart was not reached, and why. What was is kept beside the module, in .taskchart, for the page of
taskchart dev.

  --only TEXT  only paths with this text in their sentence
  --way TEXT   only ways of walking with this text in their name, such as "WebSocket"; may be given more than once
  --tap        write TAP to stdout instead

Exit codes: 0 all passed, 1 an error, 2 wrong usage, 3 some failed, 130 stopped with Ctrl-C.
`,
  run
}

const OPTIONS = { only: { type: 'string' }, way: { type: 'string', multiple: true }, tap: { type: 'boolean' } } as const

/** What a test came to. */
interface Outcome {
  readonly test: PathTest
  readonly failure?: string
}

async function run(args: readonly string[], io: Io): Promise<number> {
  const { values: { only, way: texts, tap }, positionals: [file] } = readArguments(args, OPTIONS, ['AGENT.ts|js'])
  const { agent, cases } = await loadAgent(file, io.cwd)
  const { agentTests, allWays, explained } = await loadTesting()
  const ways = allWays.filter(way => !texts || texts.some(text => way.includes(text)))
  if (ways.length === 0) throw usageError(`There is no such --way. There are: ${allWays.join('; ')}.`)
  const { tests, notes, reached } = await agentTests(agent, { ways, ...(cases && { cases }), ...(only !== undefined && { only }) }).catch(planError(file, agent.card))
  const outcomes = await outcomesOf(tests, explained, io, outcome => io.stdout.write(tap ? '' : failureOf(outcome, file)))
  await keepReached(resolve(io.cwd, file), reached(), io)
  const failed = outcomes.filter(({ failure }) => failure !== undefined).length
  if (tap) io.stdout.write(tapOf(outcomes, notes()))
  else io.stdout.write([...notes(), `${outcomes.length - failed} passed, ${failed} failed`, ''].map(oneLine).join('\n'))
  return failed === 0 ? EXIT.ok : EXIT.unsuccessful
}

/** Keeps what was reached of the chart, for the page of `taskchart dev`. */
async function keepReached(module: string, reached: Reached | undefined, { clock, stderr }: Io): Promise<void> {
  const written = reached && coverageFile(module).write({ atMs: clock.now(), ...reached })
  await written?.catch((error: Error) => stderr.write(`taskchart: what was reached could not be kept: ${oneLine(error.message)}\n`))
}

async function outcomesOf(tests: readonly PathTest[], explained: (error: unknown) => never, { stderr, terminal, clock, signal }: Io, see: (outcome: Outcome) => void): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  let now = ''
  const line = terminal && new LiveLine({ output: stderr, terminal, clock, text: () => `${outcomes.length} of ${tests.length}: ${oneLine(now)}` })
  try {
    for (const test of tests) {
      signal.throwIfAborted()
      now = test.name
      const failure = await test.run().catch(explained).then(() => undefined, (error: unknown) => (error as Error).message)
      const outcome = { test, ...(failure !== undefined && { failure }) }
      outcomes.push(outcome)
      see(outcome)
    }
    return outcomes
  } finally {
    line?.end()
  }
}

function failureOf({ test: { way, name }, failure }: Outcome, file: string): string {
  if (failure === undefined) return ''
  const alone = `npx taskchart test ${shellWord(file)} --way ${shellText(way)} --only ${shellText(name)}`
  return `${oneLine(way)}: ${oneLine(name)}\n${plain(failure).replaceAll(/^/gm, '  ')}\n  alone: ${alone}\n\n`
}

function tapOf(outcomes: readonly Outcome[], comments: readonly string[]): string {
  const lines = outcomes.flatMap(({ test: { way, name }, failure }, i) => {
    const point = `ok ${i + 1} - ${tapText(`${way}: ${name}`)}`
    return failure === undefined ? [point] : [`not ${point}`, '  ---', '  message: |', ...plain(failure).split('\n').map(text => `    ${text}`), '  ...']
  })
  return ['TAP version 14', ...lines, `1..${outcomes.length}`, ...comments.map(comment => `# ${oneLine(comment)}`), ''].join('\n')
}

/** Text in which nothing begins a directive or a comment. */
function tapText(text: string): string {
  return oneLine(text).replaceAll(/[\\#]/g, String.raw`\$&`)
}
