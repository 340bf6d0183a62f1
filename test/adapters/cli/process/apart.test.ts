import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { computesApart } from '../../../../adapters/cli/process/apart.ts'

const AGENT =
  "import { defineAgent, setupWork } from 'taskchart'\nconst say = () => process.stdout.write(`${process.pid}\\n`)\n"
const ASKS = (guard: string) => `${AGENT}
const asks = { tags: 'input-required', meta: { prompt: 'Go?' }, on: { 'message.received': { guard: () => { ${guard} }, target: 'done' } } }
export default defineAgent({ card: { name: 'A' }, work: setupWork({}).createMachine({ initial: 'asks', states: { asks, done: { type: 'final' } } }) })`

const cwd = t.testdir({
  'computing.mjs': ASKS('say(); for (;;);'),
  'loading.mjs': `${AGENT}say()\nsetInterval(() => {}, 1e6)\nawait new Promise(() => {})`,
  'killed.mjs': ASKS("process.kill(process.pid, 'SIGKILL'); for (;;);"),
  'right.mjs': ASKS('return true')
})

function start(t: Test, ...argv: string[]) {
  const child = spawn(process.execPath, ['dist/adapters/cli/bin.js', ...argv])
  t.teardown(() => child.kill('SIGKILL'))
  const errors: string[] = []
  const lines = createInterface(child.stderr).on('line', line => errors.push(line))
  return {
    child,
    errors,
    ended: once(child, 'close'),
    /** What the agent prints is no result of the command. */
    printed: once(lines, 'line') as Promise<[string]>
  }
}

for (const command of ['prove', 'test', 'paths', 'coverage']) {
  await t.test(`${command} ends at a signal, and so does the process that computes for it`, async t => {
    // Only loading an agent can take this one long.
    const file = join(cwd, command === 'coverage' ? 'loading.mjs' : 'computing.mjs')
    for (const signals of [['SIGTERM'], ['SIGINT'], ['SIGTERM', 'SIGINT']] as const) {
      const { child, ended, printed } = start(t, command, file, ...(command === 'coverage' ? ['--db', 'none.db'] : []))
      const pid = Number((await printed)[0])
      t.not(pid, child.pid)
      for (const signal of signals) child.kill(signal)
      t.strictSame(await ended, [130, null], signals.join(', then '))
      t.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
    }
  })
}

await t.test('a computation that the system ends is not proved, and says why', async t => {
  const { ended, errors } = start(t, 'prove', join(cwd, 'killed.mjs'))
  t.strictSame(await ended, [11, null])
  t.match(
    errors.at(-1),
    /^taskchart: SIGKILL ended the process that computed, as happens when it needs more memory than Node has\. So nothing is known\. /
  )
})

await t.test('the exit code is that of the computation', async t => {
  for (const [code, ...argv] of [
    [0, 'prove', join(cwd, 'right.mjs')],
    [11, 'prove', join(cwd, 'right.mjs'), '--time', '0.000001'],
    [2, '--color', 'never', 'prove'],
    [0, '--version']
  ] as const)
    t.strictSame(await start(t, ...argv).ended, [code, null])
})

await t.test('commands that wait, and tests of a server, run in the process itself', t => {
  t.ok(computesApart(['prove', 'agent.ts']))
  t.ok(computesApart(['--color', 'always', 'test', '--tap', 'agent.ts']))
  t.notOk(computesApart(['test', 'http://127.0.0.1:4242']))
  t.notOk(computesApart(['send', 'prove']))
  t.notOk(computesApart(['help', 'prove']))
  t.notOk(computesApart([]))
  t.end()
})
