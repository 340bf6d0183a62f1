import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { createMachine, fromPromise, not, type AnyStateMachine } from 'xstate'
import { chartSource } from '../../../adapters/drawing/chart-source.ts'
import { outlineOf } from '../../../adapters/drawing/outline.ts'
import { contextMachine } from '../../../machines/context.machine.ts'
import { negotiationMachine } from '../../../machines/negotiation.machine.ts'
import { taskMachine } from '../../../machines/task.machine.ts'
import { statesOf, transitionsOf } from '../../../runtime/xstate/state-nodes.ts'
import { runCommand } from '../../fixtures/cli/run-command.ts'

const cwd = t.testdir({
  'light.ts': `
import { defineAgent, negotiation, offer, setupWork, text } from 'taskchart'
import { createMachine, fromPromise } from 'xstate'
import { z } from 'zod'
const bulb = createMachine({ id: 'bulb', initial: 'glowing', states: { glowing: {} } })
const work = setupWork({ actors: { bulb, 'a/../b': bulb, wait: fromPromise(async () => {}) } }).createMachine({ id: 'light', initial: 'off', states: { off: { on: { 'message.received': 'on' } }, on: { type: 'final' } } })
export default defineAgent({ card: { name: 'Light' }, work, negotiate: negotiation({ terms: z.object({}), respond: () => offer({}) }) })
`,
  'function.js':
    "import { defineAgent } from 'taskchart'\nexport default defineAgent({ card: { name: 'Runner' }, work: async () => {} })",
  'echo.js':
    "import { defineAgent, reply } from 'taskchart'\nexport default defineAgent({ card: { name: 'Echo' }, negotiate: () => reply('x') })",
  'not-a-folder': '',
  theirs: { 'task.svg': '<svg/>' }
})
const run = (...argv: string[]) => runCommand(['graph', ...argv], { cwd })
const fileIn = (...path: string[]) => readFileSync(join(cwd, ...path), 'utf8')

await t.test('graph writes every chart of an agent to a folder, and prints the files', async t => {
  const names = ['work', 'child-bulb', 'child-a%2f..%2fb', 'negotiation', 'task', 'context'].map(name => `${name}.svg`)
  t.same(await run('light.ts'), {
    code: 0,
    stdout: '',
    stderr: names.map(name => `${join('charts', name)}\n`).join('')
  })
  t.same(readdirSync(join(cwd, 'charts')), names.toSorted())
  t.match(fileIn('charts', 'work.svg'), /^<svg [^]*data-state="light\.off"[^]*<\/svg>\n$/)
  t.match(fileIn('charts', 'child-bulb.svg'), 'data-state="bulb.glowing"')
})

await t.test('graph overwrites its own files, and stops before writing at files of others', async t => {
  for (const format of ['svg', 'mermaid', 'xstate', 'json']) {
    t.equal((await run('function.js', '--format', format, '--out', 'again')).code, 0)
    const [first] = readdirSync(join(cwd, 'again')).filter(name => name.startsWith('task'))
    writeFileSync(join(cwd, 'again', String(first)), `${fileIn('again', String(first))} `)
    t.equal((await run('function.js', '--format', format, '--out', 'again')).code, 0)
  }
  t.notMatch(fileIn('again', 'task.svg'), / $/)
  t.match(await run('light.ts', '--out', 'theirs'), {
    code: 1,
    stderr: `taskchart: ${join('theirs', 'task.svg')} exists and was not written by this command. Move it away, or give another folder with --out.\n`
  })
  t.same(readdirSync(join(cwd, 'theirs')), ['task.svg'])
  t.equal(fileIn('theirs', 'task.svg'), '<svg/>')
})

await t.test('one chart goes to stdout, in any format, or to a given folder', async t => {
  t.match(await run('light.ts', '--chart', 'work'), { code: 0, stdout: /^<svg /, stderr: '' })
  t.match(await run('light.ts', '--chart', 'work', '--format', 'mermaid'), {
    code: 0,
    stdout: /^%% Drawn by taskchart graph\.\nstateDiagram-v2\n[^]*light_off --> light_on: message\.received/
  })
  const { stdout } = await run('light.ts', '--chart', 'child:bulb', '--format', 'json')
  t.match(JSON.parse(stdout), {
    chart: 'child:bulb',
    id: 'bulb',
    states: [
      { id: 'bulb', type: 'compound', initial: ['bulb.glowing'] },
      { key: 'glowing', parent: 'bulb' }
    ],
    transitions: []
  })
  t.match(await run('light.ts', '--chart', 'work', '--out', 'one'), {
    code: 0,
    stdout: '',
    stderr: `${join('one', 'work.svg')}\n`
  })
  t.same(readdirSync(join(cwd, 'one')), ['work.svg'])
})

/** Has everything that a config may hold. */
const EVERYTHING = createMachine({
  id: 'all',
  initial: 'b',
  states: {
    a: {
      type: 'parallel',
      description: 'Both.',
      states: { left: {}, right: { id: 'own', tags: ['x', 'y'] } },
      onDone: 'b'
    },
    b: {
      entry: ['greet', () => {}],
      exit: { type: 'leave' },
      invoke: [
        {
          src: 'given',
          id: 'given',
          onDone: [
            { target: 'a', guard: not('is ready') },
            { target: 'a', guard: { type: 'says', params: 'yes' } },
            { target: 'c', guard: { type: 'says', params: () => 'no' } }
          ],
          onError: ['c', { actions: 'note' }],
          onSnapshot: { actions: 'watch' }
        },
        { src: fromPromise(async () => {}), onDone: '#own' }
      ],
      after: { 500: { target: 'c', description: 'too late' }, slow: 'a' },
      always: [{ guard: ({ event }) => event.type === 'x', target: 'c' }],
      on: { 'go.*': { target: 'b', reenter: true }, stay: {}, 'xstate.done.actor.*': 'c', two: ['#own', '.inner'] },
      initial: 'inner',
      states: { inner: {} }
    },
    c: { id: 'c', type: 'final', route: { guard: { type: 'isOver', params: { limit: 10 } }, actions: 'note' } },
    past: { type: 'history', history: 'deep', target: 'a' },
    recent: { type: 'history' },
    former: { type: 'history', target: 'a' }
  }
})

await t.test('graph --format xstate writes modules with every state and transition of the charts', async t => {
  const folder = t.testdir()
  for (const machine of [
    taskMachine,
    contextMachine,
    negotiationMachine,
    EVERYTHING,
    createMachine({ id: 'empty' })
  ] as AnyStateMachine[]) {
    const file = join(folder, `${machine.id}.mjs`)
    writeFileSync(file, chartSource(machine))
    const { machine: again } = (await import(pathToFileURL(file).href)) as { machine: AnyStateMachine }
    t.same(outlineOf(again), outlineOf(machine), machine.id)
    t.same(afterAndReentry(again), afterAndReentry(machine))
  }
  t.match(await run('light.ts', '--chart', 'work', '--format', 'xstate'), {
    code: 0,
    stdout: /^\/\/ Drawn by taskchart graph\.\nimport [^]*"message\.received": \[\n/
  })
  t.equal((await run('light.ts', '--format', 'xstate', '--out', 'sources')).code, 0)
  t.ok(existsSync(join(cwd, 'sources', 'child-bulb.machine.js')))
})

function afterAndReentry({ root }: AnyStateMachine): unknown {
  return statesOf(root)
    .flatMap(transitionsOf)
    .map(({ eventType, reenter, ...more }) => [eventType, reenter, (more as { delay?: unknown }).delay])
}

await t.test('work that is a function has no chart, which is reported', async t => {
  t.match(await run('function.js', '--out', 'function'), {
    code: 0,
    stderr: /task\.svg\n.*context\.svg\nIts work is a function, which has no chart\.\n$/
  })
  t.match(await run('function.js', '--chart', 'work'), {
    code: 1,
    stderr: 'taskchart: Runner has no chart work. It has: task, context. Its work is a function, which has no chart.\n'
  })
  t.match(await run('echo.js', '--chart', 'task'), {
    code: 1,
    stderr: 'taskchart: Echo has no chart task. It has: context.\n'
  })
})

await t.test('impossible requests are refused with what to do', async t => {
  t.match(await run('light.ts', '--format', 'png'), {
    code: 2,
    stderr: /There is no --format png\. There are: svg, mermaid, xstate, json\.\nUsage: taskchart graph /
  })
  t.match(await run('light.ts', '--format', 'constructor'), { code: 2 })
  t.match(await run(), { code: 2, stderr: /AGENT\.ts\|js is missing/ })
  t.match(await run('nowhere.ts'), { code: 1, stderr: /There is no file / })
  t.match(await run('echo.js', '--out', 'not-a-folder'), {
    code: 1,
    stderr: /not-a-folder could not be written: .*Give another folder with --out/
  })
  t.match(await run('echo.js', '--out', 'no\0folder'), { code: 1, stderr: /could not be written/ })
  t.notOk(existsSync(join(cwd, 'context.svg')))
})

await t.test('help lists the charts and formats', async t => {
  t.match(await runCommand(['help', 'graph']), { code: 0, stdout: /--chart NAME/ })
  t.match((await runCommand(['help'])).stdout, /taskchart graph +draw the charts of an agent/)
})
