import { readdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import t, { type Test } from 'tap'
import { loadAgent } from '../../adapters/cli/load-agent.ts'
import { registeredTelemetry } from '../../adapters/cli/serve/parts.ts'
import { serve } from '../../adapters/serve/serve.ts'
import { systemClock, type Clock } from '../../runtime/ports/clock.ts'
import { consoleLogger } from '../../runtime/ports/logger.ts'
import { runBare } from '../fixtures/processes/bare-process.ts'
import { createdRuntime, isBehindNode } from '../fixtures/cluster/behind-node.ts'
import { runCommand } from '../fixtures/cli/run-command.ts'
import { until } from '../fixtures/runtime/runtime-helpers.ts'

/** One command of a transcript, with what it prints: stdout and stderr as they come. */
interface Step {
  readonly command: string
  readonly output: string
}

const folder = 'examples/transcripts'
const transcripts = readdirSync(folder).map(file => file.slice(0, -'.txt'.length))
const sources = readdirSync('examples').flatMap(file =>
  file.endsWith('.ts') ? [{ file, text: readFileSync(`examples/${file}`, 'utf8') }] : []
)
const guide = readFileSync('examples/README.md', 'utf8')

/** How much faster the time of the examples goes here. */
const HURRY = 5
const begun = Date.now()
const clock: Clock = {
  ...systemClock,
  now: () => begun + (Date.now() - begun) * HURRY,
  setTimeout: (ring, ms) => systemClock.setTimeout(ring, ms / HURRY)
}

/** An id in a transcript: `<task 1>` is the same wherever it stands. */
const ID = /<(?:task|context|artifact) \d+>/g

function stepsOf(transcript: string): Step[] {
  return transcript
    .split(/^\$ /m)
    .slice(1)
    .map(step => {
      const end = step.indexOf('\n')
      return { command: step.slice(0, end), output: step.slice(end + 1).trimEnd() }
    })
}

/** The words of a command line, of which those with spaces stand in double quotes. */
function wordsOf(command: string): string[] {
  return Array.from(command.matchAll(/"([^"]*)"|(\S+)/g), ([, quoted, plain = '']) => quoted ?? plain)
}

/** What an output has to be, which tells the ids that it names for the first time. */
function patternOf(output: string, ids: ReadonlyMap<string, string>): RegExp {
  const groups = new Set<string>()
  const escaped = output.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
  const pattern = escaped.replaceAll(ID, id => {
    const known = ids.get(id)
    const group = id.replaceAll(/\W/g, '')
    if (known !== undefined) return known
    if (groups.has(group)) return String.raw`\k<${group}>`
    groups.add(group)
    return String.raw`(?<${group}>[\w~-]+)`
  })
  return new RegExp(`^${pattern}$`)
}

/** Serves the agents that a transcript serves, and gives where each is, by the address that the transcript gives it. */
async function serveAgents(t: Test, steps: readonly Step[]): Promise<Map<string, string>> {
  const addresses = new Map<string, string>()
  for (const { command } of steps) {
    const [, , , file = '', ...options] = wordsOf(command)
    const at = options.indexOf('--port')
    const [, port = ''] = at < 0 ? ['', '4242'] : options.splice(at, 2)
    const served = isBehindNode()
      ? await servedBehindNode(t, file, options.includes('--mcp'))
      : await servedByCommand(t, ['serve', file, ...options, '--port', '0'])
    addresses.set(`http://127.0.0.1:${port}/`, served)
    // An agent that works with this one finds it by that name: HOTEL_URL.
    const name = `${basename(file, '.ts').toUpperCase()}_URL`
    process.env[name] = served
    t.teardown(() => delete process.env[name])
  }
  return addresses
}

async function servedByCommand(t: Test, argv: readonly string[]): Promise<string> {
  const stop = new AbortController()
  let printed = ''
  const ended = runCommand(argv, {
    clock,
    signal: stop.signal,
    printed: text => (printed += text),
    heard: text => (printed += text)
  })
  t.teardown(() => {
    stop.abort()
    return ended
  })
  await until(() => /http:\S+/.test(printed), printed)
  const [served = ''] = /http:\S+/.exec(printed) ?? []
  return served
}

async function servedBehindNode(t: Test, file: string, mcp: boolean): Promise<string> {
  const { agent } = await loadAgent(file, process.cwd())
  const telemetry = await registeredTelemetry(consoleLogger)
  const runtime = createdRuntime({ agent, clock, ...(telemetry && { telemetry: telemetry.telemetry }) })
  const { url, close } = await serve(runtime, { port: 0, mcp })
  t.teardown(async () => {
    await close()
    await runtime.close()
  })
  return url
}

/** Runs a command: `taskchart` in this process, a script of its own with the address of the agent. */
async function outputOf(command: string, addresses: ReadonlyMap<string, string>): Promise<string> {
  const [, program, ...args] = wordsOf(command)
  if (program === 'tsx') {
    const { stdout } = await runBare('--import', 'tsx', ...args, ...addresses.values())
    return stdout
  }
  let written = ''
  const write = (text: string) => (written += text)
  await runCommand(args, { printed: write, heard: write })
  return written
}

async function replay(t: Test, name: string): Promise<void> {
  const steps = stepsOf(readFileSync(`${folder}/${name}.txt`, 'utf8'))
  const isServe = ({ command }: Step) => command.startsWith('npx taskchart serve ')
  const addresses = await serveAgents(t, steps.filter(isServe))
  const ids = new Map<string, string>()
  for (const { command, output } of steps.filter(step => !isServe(step))) {
    const known = command.replaceAll(ID, id => ids.get(id) ?? id)
    const real = [...addresses].reduce((line, [address, served]) => line.replaceAll(address, served), known)
    const written = await outputOf(real, addresses)
    const shown = [...addresses].reduce(
      (text, [address, served]) => text.replaceAll(served, address),
      written.trimEnd()
    )
    // A command line has the ids of a cluster in quotes.
    const match = patternOf(output, ids).exec(shown.replaceAll(/"([\w-]+~\d+)"/g, '$1'))
    t.ok(match, command, { wanted: output, found: shown })
    for (const [id] of output.matchAll(ID)) {
      const found = match?.groups?.[id.replaceAll(/\W/g, '')]
      if (found !== undefined) ids.set(id, found)
    }
  }
}

await t.test('the examples are a course: one lesson per transcript, every agent, short, without casts', async t => {
  const lessons = Array.from(guide.matchAll(/^\[`(.*?)\.ts`\]\(\1\.ts\)/gm), ([, name = '']) => name)
  t.ok(lessons.length >= 10)
  t.strictSame(lessons.toSorted(), transcripts.toSorted())
  const all = transcripts.map(name => readFileSync(`${folder}/${name}.txt`, 'utf8')).join('')
  for (const { file, text } of sources) {
    if (!text.includes('export default')) continue
    t.ok(all.includes(`$ npx taskchart serve examples/${file}`), `${file} is served in a transcript`)
    t.ok(text.split('\n').length <= 160, `${file} has at most 160 lines`)
  }
  for (const { file, text } of sources) {
    const code = text.replaceAll(/\/\*\*[^]*?\*\/|\/\/.*|^import .*$|'[^'\n]*'|`[^`]*`|\bas const\b/gm, '')
    t.notMatch(code, /\bas [{A-Za-z]|\bany\b|[\w)\]]!/, `${file} has no cast`)
  }
})

for (const name of transcripts) {
  await t.test(`the transcript of ${name} matches the program's output`, t => replay(t, name))
}
