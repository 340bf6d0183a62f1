import '../../../fixtures/stores/needs-sqlite.ts'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { coverageFile } from '../../../../adapters/cli/files.ts'
import { openStore } from '../../../../adapters/cli/stores.ts'
import { loadAgent } from '../../../../adapters/cli/load-agent.ts'
import { createRuntime } from '../../../../runtime/index.ts'
import { runCommand } from '../../../fixtures/cli/run-command.ts'
import { say } from '../../../fixtures/runtime/runtime-helpers.ts'
import { quiet } from '../../../fixtures/stores/stored-tasks.ts'

const AGENT = `
import { createMachine } from '${new URL(import.meta.resolve('xstate')).pathname}'
const work = createMachine({
  id: 'w', initial: 'a',
  states: { a: { always: 'b' }, b: { tags: 'input-required', meta: { prompt: 'Which?' }, on: { 'message.received': 'c', skip: 'c' } }, c: { type: 'final' } }
})
export default { card: { name: 'Walks' }, work }
`

const PARENT = `
import { createMachine, setup } from '${new URL(import.meta.resolve('xstate')).pathname}'
const below = createMachine({ id: 'below', initial: 'a', states: { a: { always: 'b' }, b: { type: 'final' } } })
const work = setup({ actors: { below } }).createMachine({ id: 'p', initial: 'a', states: { a: { invoke: { src: 'below', onDone: 'b' } }, b: { type: 'final' } } })
export default { card: { name: 'Starts' }, work }
`

/** A folder with an agent, and the database of two tasks of it, of which one has ended. */
async function used(t: Test): Promise<string> {
  const cwd = t.testdir({ 'agent.mjs': AGENT })
  const { store } = await openStore('agent.db', cwd, quiet().logger)
  const { agent } = await loadAgent('agent.mjs', cwd)
  const runtime = createRuntime({ agent, store })
  const asked = await runtime.sendMessage(say('go'))
  await runtime.sendMessage(say('this', { taskId: 'task' in asked ? asked.task.id : '' }))
  await runtime.sendMessage(say('go'))
  await runtime.close()
  return cwd
}

await t.test(
  'transitions that no task took come first, then how often each was taken, then the time in each state',
  async t => {
    const cwd = await used(t)
    const { code, stdout } = await runCommand(['coverage', 'agent.mjs', '--db', 'agent.db'], { cwd })
    t.equal(code, 0)
    t.strictSame(
      stdout.replaceAll(/\d+ ms/g, 'N ms').replaceAll(/ +/g, ' '),
      [
        'work: 2 of 3 transitions were taken',
        'TAKEN TRANSITION',
        '0 w.b on skip to c',
        '2 w.a on its own to b',
        '1 w.b on message.received to c',
        '',
        'WAITS MEAN STATE',
        '2 N ms w.a',
        '1 N ms w.b',
        ''
      ].join('\n')
    )
    const { stdout: pairs } = await runCommand(['coverage', 'agent.mjs', '--db', 'agent.db', '--pairs'], { cwd })
    t.ok(
      pairs.endsWith(
        'TAKEN  PAIR\n2      the start, then w.a on its own to b\n1      w.a on its own to b, then w.b on message.received to c\n'
      ),
      pairs
    )
  }
)

await t.test('transitions that no test takes are marked, once taskchart test has said which it takes', async t => {
  const cwd = await used(t)
  await coverageFile(join(cwd, 'agent.mjs')).write({
    reached: { states: [], transitions: ['w.a on its own to b'] },
    missing: []
  } as never)
  t.match(
    (await runCommand(['coverage', 'agent.mjs', '--db', 'agent.db'], { cwd })).stdout,
    /w\.a on its own to b\n1 +w\.b on message\.received to c \(no test\)\n/
  )
  const { stdout } = await runCommand(['coverage', 'agent.mjs', '--db', 'agent.db', '--json'], { cwd })
  t.match(JSON.parse(stdout), {
    chart: 'work',
    version: /^[\w-]{22}$/,
    states: [
      { state: 'w.a', waits: 2 },
      { state: 'w.b', waits: 1 }
    ],
    transitions: [
      { name: 'w.a on its own to b', count: 2, tested: true },
      { name: 'w.b on message.received to c', count: 1, tested: false },
      { name: 'w.b on skip to c', count: 0, tested: false }
    ],
    pairs: [
      { previous: 'the start', taken: 'w.a on its own to b', count: 2 },
      { previous: 'w.a on its own to b', taken: 'w.b on message.received to c', count: 1 }
    ]
  })
})

await t.test('a chart that no task has used has neither times nor pairs, and what is missing is said', async t => {
  const cwd = t.testdir({
    'agent.mjs': AGENT,
    'parent.mjs': PARENT,
    'function.mjs': "export default { card: { name: 'F' }, work: () => {} }"
  })
  await (await openStore('agent.db', cwd, quiet().logger)).store.close()
  t.match(await runCommand(['coverage', 'agent.mjs', '--db', 'agent.db'], { cwd }), {
    code: 0,
    stdout: /^work: 0 of 3 transitions were taken\nTAKEN {2}TRANSITION\n(0 .*\n){3}$/
  })
  t.match(await runCommand(['coverage', 'parent.mjs', '--db', 'agent.db'], { cwd }), {
    code: 0,
    stdout: /^work: 0 of 1 transitions were taken\n[^]*child:below: 0 of 1 transitions were taken\n/
  })
  t.match(await runCommand(['coverage', 'agent.mjs'], { cwd }), {
    code: 2,
    stderr: /Say where the tasks are: --db agent\.db/
  })
  t.match(await runCommand(['coverage', 'function.mjs', '--db', 'agent.db'], { cwd }), {
    code: 1,
    stderr: /F has no chart of its own: its work is a function\./
  })
  t.match(await runCommand(['coverage', 'agent.mjs', '--db', 'none.db'], { cwd }), {
    code: 1,
    stderr: /does not exist/
  })
})
