import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { TestRun } from '../../../../adapters/cli/dev/runs.ts'
import { loadPlanning } from '../../../../adapters/cli/test/testing.ts'
import type { ChartCoverage, TestProgress } from '../../../../adapters/inspector/test-result.ts'
import { crashLines } from '../../../../adapters/testing/agent-tests.ts'
import { runCommand } from '../../../fixtures/cli/run-command.ts'
import { deferred, rejection } from '../../../fixtures/runtime/runtime-helpers.ts'
import { Screen } from '../../../fixtures/cli/screen.ts'
import { NO_SQLITE } from '../../../fixtures/stores/sqlite.ts'
import { TestClock } from '../../../fixtures/runtime/test-clock.ts'

const cwd = t.testdir({
  'light.js': `
import { defineAgent, setupWork, textOf } from 'taskchart'
const work = setupWork({ guards: { isOn: ({ event }) => textOf(event.message) === 'on' } }).createMachine({
  id: 'light', initial: 'off',
  states: { off: { tags: 'input-required', on: { 'message.received': { guard: 'isOn', target: 'on' } } }, on: { type: 'final' } }
})
export const cases = { messages: { on: 'on', nothing: '' }, opening: { 'a # light': 'light' } }
export default defineAgent({ card: { name: 'Light' }, work })
`,
  'forgetful.js': `
import { defineAgent, setupWork } from 'taskchart'
const work = setupWork({}).createMachine({
  context: () => ({ at: undefined }), initial: 'asking',
  states: { asking: { tags: 'input-required', on: { 'message.received': 'done' } }, done: { type: 'final' } },
  output: ({ context }) => ({ artifact: Object.keys(context)[0].toUpperCase() })
})
export default defineAgent({ card: { name: 'Forgetful' }, work })
`,
  'dice.js': `
import { defineAgent, setupWork } from 'taskchart'
import { assign } from 'xstate'
const work = setupWork({}).createMachine({ context: {}, initial: 'rolling', states: { rolling: { always: { target: 'done', actions: assign({ n: () => Math.random() }) } }, done: { type: 'final' } }, output: ({ context }) => ({ artifact: { text: String(context.n) } }) })
export default defineAgent({ card: { name: 'Dice' }, work })
`,
  'function.js':
    "import { defineAgent } from 'taskchart'\nexport default defineAgent({ card: { name: 'A' }, work: async () => {} })",
  'echo.js':
    "import { defineAgent, reply } from 'taskchart'\nexport default defineAgent({ card: { name: 'Echo' }, negotiate: () => reply('x') })",
  'wrong.js':
    "import { defineAgent } from 'taskchart'\nexport const cases = 5\nexport default defineAgent({ card: { name: 'A' }, work: async () => {} })",
  'shy.js':
    "import { accepted, defineAgent, reply } from 'taskchart'\nexport default defineAgent({ card: { name: 'Shy' }, work: async () => {}, negotiate: ({ message }) => (message.parts.length > 1 ? accepted() : reply('Hm?')) })",
  'dim.js': `
    import { defineAgent, fromPromise, setupWork } from 'taskchart'
    import { assign } from 'xstate'
    const work = setupWork({ actors: { dim: fromPromise(async () => 'x') } }).createMachine({
      id: 'light', context: { text: '' }, initial: 'on',
      states: { on: { invoke: { src: 'dim', onDone: { target: 'off', actions: assign({ text: ({ event }) => event.output }) }, onError: 'off' } }, never: { type: 'final' }, off: { type: 'final' } },
      output: ({ context }) => ({ artifact: { text: context.text } })
    })
    export default defineAgent({ card: { name: 'Dim' }, work })
  `
})
const run = (...argv: string[]) => runCommand(argv, { cwd })

await t.test('paths prints a sentence for each path, all or those with a text', async t => {
  const { code, stdout, stderr } = await run('paths', 'light.js')
  t.equal(code, 0)
  t.strictSame(stdout.split('\n'), [
    'opened by "a # light", but not the client says "nothing" nor "an authorization" arrives',
    'opened by "a # light", then the client cancels',
    'opened by "a # light", then the client says "on", which is its end',
    ''
  ])
  t.equal(stderr, '3 paths through 2 configurations\n')
  t.equal(
    (await run('paths', 'light.js', '--only', 'cancels')).stdout,
    'opened by "a # light", then the client cancels\n'
  )
  t.match((await run('paths', 'function.js')).stdout, /then the event "ask" comes/)
})

await t.test('paths writes lines of JSON, and a drawing', async t => {
  const lines = (await run('paths', 'light.js', '--json')).stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  t.match(lines[2], {
    path: /which is its end$/,
    begins: [
      { state: 'TASK_STATE_SUBMITTED' },
      { state: 'TASK_STATE_WORKING' },
      { state: 'TASK_STATE_INPUT_REQUIRED' }
    ],
    steps: [
      { move: 'the client says "on"', told: [{ state: 'TASK_STATE_WORKING' }, { state: 'TASK_STATE_COMPLETED' }] },
      { refused: 'UnsupportedOperation' },
      {},
      {},
      { move: 'the client cancels', refused: 'TaskNotCancelable' }
    ]
  })
  t.match(
    (await run('paths', 'light.js', '--mermaid')).stdout,
    /^stateDiagram-v2\n[^]*light_off --> light_on: message\.received \[isOn\]/
  )
  t.match(await run('paths', 'light.js', '--mermaid', '--json'), { code: 2, stderr: /not both/ })
  t.match(await run('paths', 'echo.js'), {
    code: 1,
    stderr: /Echo, of echo\.js, cannot be tested: it has no work to test/
  })
  t.match(await run('paths', 'wrong.js'), { code: 1, stderr: /The export cases of wrong\.js has to be an object/ })
})

const onSqlite = 'in process on SQLite, killed before every step'

await t.test('test walks the paths, and prints what it has reached', { skip: NO_SQLITE }, async t => {
  const { code, stdout } = await run('test', 'light.js')
  t.equal(code, 0)
  t.strictSame(stdout.split('\n'), [
    'states: 3 of 3',
    'transitions: 1 of 1',
    'tags: 1 of 1',
    'guard outcomes: 2 of 2',
    '37 passed, 0 failed',
    `${onSqlite}: 1 of 3 paths, which visit each configuration. To walk all of them: --complete, or complete: true`,
    ''
  ])
  t.match(await run('test', 'light.js', '--complete', '--driver', 'SQLite'), {
    code: 0,
    stdout: /^3 passed, 0 failed\n$/
  })
  t.match(await run('test', 'light.js', '--only', 'cancels', '--driver', 'SQLite'), {
    code: 0,
    stdout: /^1 passed, 0 failed\n$/
  })
  t.match(await run('test', 'light.js', '--driver', 'WebSocket', '--only', 'cancels'), {
    code: 0,
    stdout: '2 passed, 0 failed\n'
  })
  t.match(await run('test', 'light.js', '--driver', 'pigeon'), {
    code: 2,
    stderr: /No driver's name contains that --driver\. The drivers are: the chart; /
  })
  t.match(await run('test', 'light.js', '--only', 'nowhere'), {
    code: 1,
    stderr: /No path's name contains "nowhere"\. There are \d+, such as 'opened by /
  })
  t.match(await run('test', 'light.js', '--only', 'which ends'), {
    code: 1,
    stderr: /No path's name contains "which ends"\. Did you mean 'opened by /
  })
})

await t.test("the line to add quotes an actor's name that is no identifier", async t => {
  t.match(crashLines([{ way: 'opened', error: 'broken', guessed: ['to-dim'] }]), [
    'the chart throws, opened: broken',
    /results: \{ 'to-dim': \{ 'a result': … \} \}/
  ])
})

await t.test('test lists unreached parts in its summary, and fails for them only with --strict', async t => {
  const { code, stdout } = await run('test', 'dim.js', '--driver', 'the chart')
  t.equal(code, 0)
  t.match(
    stdout,
    /^the chart throws, opened by "start", then dim ends with "done": A2AError: .*\ndim ended without an output, as no case says what it gives\. Add to the module: export const cases = \{ results: \{ dim: \{ 'a result': … \} \} \}\n/
  )
  t.match(
    stdout,
    /\nnot reached: light\.never is never entered\n\d+ passed, 0 failed, 1 not reached, 1 where the chart throws\n$/
  )
  t.equal((await run('test', 'dim.js', '--driver', 'the chart', '--strict')).code, 10)
  t.match(await run('test', 'dim.js', '--driver', 'the chart', '--strict', '--tap'), {
    code: 10,
    stdout: /\n# 1 not reached\n# 1 where the chart throws\n$/
  })
  t.match(await run('test', 'light.js', '--driver', 'the chart', '--strict'), {
    code: 0,
    stdout: /\d+ passed, 0 failed\n$/
  })
  t.match(await run('test', 'function.js', '--driver', 'in process, restarted', '--strict'), { code: 0 })
  t.match(await run('test', 'light.js', '--strict', '--only', 'cancels'), {
    code: 2,
    stderr: /--strict needs every path\. Leave out --only\./
  })
  t.match(await run('test', 'light.js', '--strict', '--driver', 'in process'), {
    code: 2,
    stderr: /--strict needs a driver that walks the chart alone\. Add --driver "the chart"\./
  })
})

await t.test(
  'the bounds of a search are options, and one that is met has the exit code of what is not proved',
  async t => {
    for (const command of ['paths', 'test']) {
      t.match(
        await run(command, 'light.js', '--limit', '1'),
        {
          code: 11,
          stderr:
            /Light, of light\.js, cannot be tested: not every configuration of the chart was found: there are more than 1 configurations\. /
        },
        command
      )
    }
    for (const command of ['paths', 'test', 'prove']) {
      t.match(
        await run(command, 'light.js', '--time', '0.000001', '--memory', '1', '--limit', '100'),
        { code: 11 },
        command
      )
      t.match(
        await run(command, 'light.js', '--time', 'x'),
        { code: 2, stderr: /--time has to be a number above 0, not x\./ },
        command
      )
      t.match(await run(command, 'light.js', '--limit', '1.5'), { code: 2 }, command)
      t.match(await run(command, 'light.js', '--memory', '0'), { code: 2 }, command)
      t.match(
        await run('help', command),
        { stdout: /--limit NUMBER .*; default (?:1000|20000)\n {2}--time SECONDS .*\n {2}--memory MB / },
        command
      )
    }
    t.match(await run('prove', 'light.js', '--time', '0.000001'), {
      stdout:
        /\nunknown .*: the time limit of 0\.000001 s has passed after 1 configurations\n[^]*\nNot all was explored: the time limit of 0\.000001 s has passed after 1 configurations\. Raise that bound, or give memory in the cases\.\n/
    })
  }
)

await t.test('a chart that draws random numbers is one error, not one of each test', async t => {
  t.match(await run('test', 'dice.js', '--driver', 'in process'), {
    code: 1,
    stdout: '',
    stderr: /^taskchart: Dice, of dice\.js, cannot be tested: its chart draws random numbers, [^\n]*\n$/
  })
})

await t.test('an agent whose first message opens no task gets the lines to add', async t => {
  t.match(await run('test', 'shy.js'), {
    code: 1,
    stderr:
      'taskchart: Shy, of shy.js, cannot be tested: the message "start" opens no task. Give one that does, in the agent\'s module or as the option cases:\n' +
      "export const cases = {\n  opening: { 'a request': 'words that open a task' }\n}\n"
  })
})

await t.test('--paths selects other kinds of paths', { skip: NO_SQLITE }, async t => {
  t.equal(
    (await run('paths', 'light.js', '--paths', 'shortest')).stdout,
    'opened by "a # light", then the client says "on"\n'
  )
  t.match(await run('test', 'light.js', '--paths', 'simple', '--driver', 'in process'), {
    code: 0,
    stdout: /^\d+ passed, 0 failed\n$/
  })
  t.match(await run('test', 'forgetful.js', '--paths', 'shortest', '--driver', 'in process, killed'), {
    code: 10,
    stdout: /alone: npx taskchart test forgetful\.js --paths shortest --driver /
  })
  for (const command of ['paths', 'test'])
    t.match(await run(command, 'light.js', '--paths', 'long'), {
      code: 2,
      stderr: /There is no --paths long\. There are: cover, shortest, simple\./
    })
})

await t.test('a failure is reported with the line that runs it alone', async t => {
  const { code, stdout } = await run('test', 'forgetful.js', '--driver', 'the chart', '--driver', 'in process, killed')
  t.equal(code, 10)
  const [, alone = ''] = /^ {2}alone: npx taskchart (.*)$/m.exec(stdout) ?? []
  t.match(
    stdout,
    /^in process, killed before every step: opened by "start", then the client says "an answer", which is its end\n {2}the client says "an answer": the task has to tell\n {4}wanted: [^]*found: /m
  )
  t.match(stdout, /\n\d+ passed, \d+ failed\n$/)
  const words = Array.from(
    alone.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g),
    ([, single, double, plain]) => single ?? double ?? plain ?? ''
  )
  t.match(await run(...words), { code: 10, stdout: /\n0 passed, 1 failed\n$/ })
  const { failed } = JSON.parse(
    readFileSync(join(cwd, '.taskchart/coverage/forgetful.js.json'), 'utf8')
  ) as ChartCoverage
  t.match(
    failed?.[0],
    {
      driver: 'the chart, restored from JSON before every step',
      name: 'opened by "start", then the client says "an answer", which is its end',
      message: /^the client says "an answer"/,
      alone: /^npx taskchart test/,
      at: 1,
      steps: [
        { move: 'the opening', states: ['(machine)', '(machine).asking'], transitions: [] },
        {
          move: 'the client says "an answer"',
          states: ['(machine)', '(machine).done'],
          transitions: [/message\.received/]
        }
      ]
    },
    'and it is saved with its steps for the page'
  )
})

await t.test('the page of dev has the tests run in a process of its own', async t => {
  const runOf = (file: string) => {
    const told: TestProgress[] = []
    const ended = deferred<TestProgress>()
    const run = new TestRun(join(cwd, file))
    const tell = (progress: TestProgress) => {
      told.push(progress)
      if (!progress.isRunning) ended.resolve(progress)
    }
    run.start(tell)
    run.start(tell)
    return { run, told, ended: ended.promise }
  }
  const { told, ended } = runOf('forgetful.js')
  const { total, failed } = await ended
  t.ok(failed > 0)
  t.strictSame(
    told.map(({ done }) => done),
    [0, 0, ...Array.from({ length: total }, (_, i) => i + 1), total],
    'it runs once, and tells each test'
  )
  t.match(await runOf('wrong.js').ended, {
    total: 0,
    error: /The export cases of wrong\.js has to be an object|wrong\.js/
  })
  const stopped = runOf('light.js')
  stopped.run.stop()
  stopped.run.stop()
  t.match(await stopped.ended, { total: 0, error: 'The tests did not start.' })
  stopped.run.stop()
})

await t.test('test writes TAP, in which no name is a directive', async t => {
  const passed = (await run('test', 'light.js', '--tap', '--driver', 'in process, restarted')).stdout
  t.match(
    passed,
    /^TAP version 14\n1\.\.3\nok 1 - in process, restarted before every step: opened by "a \\# light", but not /
  )
  const failed = (await run('test', 'forgetful.js', '--tap', '--driver', 'in process, killed')).stdout
  t.match(
    failed,
    /\nnot ok \d+ - in process, killed before every step: [^\n]*\n {2}---\n {2}message: \|\n {4}the client says[^]*\n {2}\.\.\.\n/
  )
})

/** Runs `taskchart test` on a terminal while time passes. `shown` has each text of the last line. */
async function runOnScreen(file: string, driver: string, hasColours: boolean) {
  const terminal = { columns: 80, hasColours }
  const screen = new Screen()
  const shown: (string | undefined)[] = []
  const clock = new TestClock()
  const heard = (text: string) => {
    screen.write(text)
    shown.push(screen.last)
  }
  const command = runCommand(['test', file, '--driver', driver], {
    cwd,
    clock,
    terminal,
    screen: terminal,
    heard,
    printed: text => screen.write(text)
  })
  const ended = command.then(() => true)
  while (!(await Promise.race([ended, new Promise<false>(resolve => setImmediate(resolve, false))])))
    clock.increment(100)
  return { screen, shown, code: (await command).code }
}

await t.test('progress is shown on a terminal', { skip: NO_SQLITE }, async t => {
  const { screen, shown, code } = await runOnScreen('light.js', 'in process, restarted', false)
  t.equal(code, 0)
  t.ok(
    shown.some(line => /^\d of 3: opened by/.test(line ?? '')),
    JSON.stringify(shown)
  )
  t.equal(screen.last, '', 'and is gone at the end')
})

await t.test('failures are counted on a terminal, and written above the counter', { skip: NO_SQLITE }, async t => {
  const { screen, shown, code } = await runOnScreen('forgetful.js', 'in process,', true)
  t.equal(code, 10)
  t.ok(
    shown.some(line => /^\d+ of \d+, \d+ failed: opened by/.test(line ?? '')),
    JSON.stringify(shown)
  )
  t.ok(
    screen.lines.some(line => line.startsWith('in process, killed before every step: opened by')),
    'its own line'
  )
})

await t.test('a stopped test does not continue', async t => {
  const stop = new AbortController()
  stop.abort()
  t.equal((await runCommand(['test', 'light.js'], { cwd, signal: stop.signal })).code, 130)
})

await t.test('the command says what to install without @xstate/graph', async t => {
  t.match(await rejection(loadPlanning(() => Promise.reject(new Error('Cannot find package')))), {
    name: 'CommandError',
    message: /npm i -D tsx @xstate\/graph elkjs$/
  })
})

// These load TypeScript with tsx, whose hooks make later threads of stores start slowly.
await t.test('the barista is tested completely, and its chart does not throw', async t => {
  const { code, stdout } = await run('test', resolve('examples/barista.ts'), '--driver', 'the chart', '--strict')
  t.equal(code, 0)
  t.notMatch(stdout, /the chart throws/)
})

await t.test('paths shows the steps before a task if an agent negotiates', async t => {
  const gardener = resolve('examples/negotiate.ts')
  const { stdout } = await run('paths', gardener, '--only', 'negotiating')
  t.match(stdout, /^negotiating: the client proposes "what are no terms"\n/m)
  const lines = (await run('paths', gardener, '--only', 'negotiating', '--json')).stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  t.equal(lines.length, stdout.trim().split('\n').length)
  t.ok(
    lines.some(
      ({ steps }) => steps.at(-1).move === 'the client accepts the offer' && 'task' in steps.at(-1).heard[0].answer
    )
  )
})
