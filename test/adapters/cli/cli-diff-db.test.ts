import '../../fixtures/stores/needs-sqlite.ts'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadAgent } from '../../../adapters/cli/load-agent.ts'
import { driverOf } from '../../../adapters/storage/driver.ts'
import { sqliteStore } from '../../../adapters/storage/sqlite.ts'
import { createNode } from '../../../runtime/runtime.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { runCommand, type Surroundings } from '../../fixtures/cli/run-command.ts'
import { Screen } from '../../fixtures/cli/screen.ts'
import { open, recordingLogger, rest, say, until } from '../../fixtures/runtime/runtime-helpers.ts'

const CHART = `
import { defineAgent, setupWork, textOf } from 'taskchart'
const child = setupWork({}).createMachine({ id: 'child', initial: 'asking', states: { asking: { tags: 'input-required', on: { 'message.received': 'told' } }, told: { type: 'final' } } })
const work = setupWork({ actors: { child }, guards: { isLong: ({ event }) => textOf(event.message).length > 3 } }).createMachine({
  id: 'work',
  initial: 'asking',
  states: {
    asking: { tags: 'input-required', on: { 'message.received': [{ guard: 'isLong', target: 'talking' }, { target: 'waiting' }] } },
    talking: { invoke: { src: 'child', onDone: 'done' } },
    waiting: { tags: 'input-required', on: { 'message.received': 'done' } },
    done: { type: 'final' }
  }
})
export default defineAgent({ card: { name: 'A' }, version: '1', work })
`

const FUNCTION = `
import { artifact, defineAgent, inputRequired, progress } from 'taskchart'
export default defineAgent({ card: { name: 'A' }, version: '1', work: async ({ ask, emit, step, sleep }) => {
  emit(progress('begins'))
  const price = await step('price', () => 3)
  emit(artifact({ artifactId: 'bill', name: 'bill', parts: [{ text: 'price ' + price }] }))
  await ask(inputRequired('How many?'))
  await sleep(1000000)
  await ask(inputRequired('Which size?'))
} })
`

/** A schema for the answer to a question. */
const SCHEMA = `const validate = value => ({ value })
const schema = { '~standard': { version: 1, vendor: 'own', validate, jsonSchema: { input: () => ({ type: 'string' }) } } }
`

/** A folder with these modules, and a file with the tasks of one of them: `moves` are the messages of each. */
async function stored(t: Test, agent: string, moves: readonly (readonly string[])[], change?: (store: Store) => Store) {
  const cwd = t.testdir({ 'agent.mjs': agent, 'price.mjs': 'export const price = 1' })
  const { logger } = recordingLogger()
  const writes: Promise<void>[] = []
  const begin = async (file: string) => {
    const { agent, localModules } = await loadAgent(file, cwd)
    const inner = sqliteStore(join(cwd, 'tasks.db'))
    const writeDefinition: Store['writeDefinition'] = async (...args) => {
      const write = Promise.resolve(inner.writeDefinition?.(...args))
      writes.push(write)
      await write
    }
    const store = { ...inner, writeDefinition }
    return createNode({
      agent,
      store: change ? change(store) : store,
      logger,
      localModules
    })
  }
  const runtime = await begin('agent.mjs')
  const ids: string[] = []
  for (const messages of moves) {
    const { id } = await open(runtime)
    for (const text of messages) {
      await until(async () => (await runtime.getTask({ id })).status.state === 'TASK_STATE_INPUT_REQUIRED')
      await runtime.sendMessage({ ...say(text, { taskId: id }), configuration: { returnImmediately: true } })
    }
    await rest()
    ids.push(id)
  }
  await Promise.all(writes)
  let versions = 0
  const diff = (agent: string, args: readonly string[] = [], more?: Surroundings) => {
    // A module is loaded once.
    const file = `new${(versions += 1)}.mjs`
    writeFileSync(join(cwd, file), agent)
    return runCommand(['diff', '--db', 'tasks.db', file, ...args], { cwd, ...more })
  }
  t.teardown(() => runtime.close())
  return { cwd, ids, runtime, diff }
}

const linesOf = (stdout: string) =>
  stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Record<string, unknown>)

await t.test('open tasks are compared with the definition that stored them, while a server uses the file', async t => {
  const { ids, diff } = await stored(t, CHART, [[], [], ['no'], ['maybe']])
  const [one = '', two = '', three = '', four = ''] = ids
  const same = await diff(CHART)
  t.match(same, { code: 0, stderr: '' })
  t.match(same.stdout, /^4 open tasks, version 1 now\n\n4 open tasks stored by version 1, definition [\w-]{22}\n/)
  t.match(same.stdout, `  asking   same          2 tasks: ${one}, ${two}`)
  const page = (await diff(CHART.replace('> 3', '> 4').replace("version: '1'", "version: '2'"), ['-o', 'html'])).stdout
  t.match(page, /<h1>4 open tasks, version 2 now<\/h1>[^]*<h2>4 open tasks stored by version 1, definition/)
  t.match(page, /<li class="changed">the agent&#39;s version[^]*class="[^"]* active" data-state="work\.waiting"/)
  t.match(page, '<h3>The actor child</h3>')
  t.match((await diff(CHART, ['-o', 'html'])).stdout, /<h1>4 open tasks, version 1 now<\/h1>[^]*<p>No changes\.<\/p>/)
  t.match(page, `<td>2 tasks: ${one}, ${two}</td>`)
  const changed = await diff(CHART.replace('> 3', '> 4'))
  t.equal(changed.code, 11)
  t.match(changed.stdout, /asking +depends +depends on the guard isLong, whose source changed/)
  t.match(changed.stdout, new RegExp(`waiting +same +1 task: ${three}\n`))
  const gone = await diff(
    CHART.replace("target: 'waiting'", "target: 'resting'").replace('    waiting:', '    resting:')
  )
  t.equal(gone.code, 10)
  t.match(gone.stdout, /waiting +not restored +This task cannot be resumed .*no state work.waiting/)
  const child = CHART.replace("'message.received': 'told'", "'message.received': 'told', NEW: 'told'")
  t.match(
    (await diff(child)).stdout,
    new RegExp(
      `talking +depends +the actor 0\\.work\\.talking in asking: otherwise; asking has changed\n +depends on the actor child, whose source changed\n +1 task: ${four}`
    )
  )
})

await t.test('a local module that is edited after it was loaded, and before the first task, is a change', async t => {
  const agent = `import './price.mjs'\n${CHART}`
  const { diff } = await stored(t, agent, [[]], store => {
    writeFileSync(join(t.testdirName, 'price.mjs'), 'export const price = 2')
    return store
  })
  t.match(await diff(agent), {
    code: 11,
    stdout: /asking {2}depends {7}depends on the local module price\.mjs has changed/
  })
})

await t.test('the outcome is also one JSON document, Markdown, a drawing, and a line for each task', async t => {
  const { ids, diff } = await stored(t, CHART, [[], ['no']])
  const agent = CHART.replace('> 3', '> 4')
  const { tasks, definitions } = JSON.parse((await diff(agent, ['--json'])).stdout)
  t.equal(tasks, 2)
  t.match(definitions, [{ version: '1', tasks: 2, groups: [{ state: 'asking', verdict: 'depends', tasks: 1 }, {}] }])
  t.match(definitions[0].diff, { changes: [], charts: [{ chart: 'work' }, { chart: 'child:child' }] })
  const markdown = (await diff(agent, ['-o', 'markdown'])).stdout
  t.match(markdown, /\| asking \| depends \| 1 task: \S+ \| depends on the guard isLong/)
  t.match(markdown, /- changed: the source of the guard isLong has changed/)
  t.match((await diff(agent, ['-o', 'mermaid'])).stdout, /stateDiagram/)
  t.match((await diff(agent, ['-o', 'mermaid', '--chart', 'child:none'])).stderr, /have no chart child:none/)
  t.match(linesOf((await diff(agent, ['-o', 'lines'])).stdout), [
    { taskId: ids[0], principal: 'anonymous', tenant: '', verdict: 'depends', version: '1', configuration: 'asking' },
    { taskId: ids[1], verdict: 'same', state: 'TASK_STATE_INPUT_REQUIRED', reasons: [] }
  ])
})

await t.test('tasks that migrate are migrated in the trial', async t => {
  const { diff } = await stored(t, CHART, [[], ['no']])
  const renamed = CHART.replace("target: 'waiting'", "target: 'resting'")
    .replace('    waiting:', '    resting:')
    .replace("version: '1'", "version: '2'")
  const migrate = (code: string) =>
    renamed.replace("version: '2',", `version: '2', migrate: ({ snapshot }) => ${code},`)
  const good = migrate("(snapshot.value === 'waiting' ? { ...snapshot, value: 'resting' } : snapshot)")
  const { code, stdout } = await diff(good, ['-o', 'lines'])
  t.equal(code, 11)
  t.match(linesOf(stdout), [
    { isMigrated: true, verdict: 'depends' },
    { isMigrated: true, verdict: 'depends' }
  ])
  const bad = await diff(migrate('snapshot'), ['-o', 'lines'])
  t.equal(bad.code, 10)
  t.match(linesOf(bad.stdout), [
    { verdict: 'depends' },
    { verdict: 'not restored', reasons: [/no state work.waiting/] }
  ])
})

await t.test('a function runs with the journal of each task, and the word at which it differs is shown', async t => {
  const { diff, runtime } = await stored(t, FUNCTION, [[], ['two']])
  const before = await runtime.listTasks({})
  t.match(await diff(FUNCTION.replace('export', '// A comment.\nexport')), { code: 0 })
  const rows: [name: string, from: string, to: string, code: number, verdicts: object[]][] = [
    [
      'new code at the end',
      "await ask(inputRequired('Which size?'))",
      "await ask(inputRequired('Which size?'))\n  emit(progress('more'))",
      11,
      [
        { verdict: 'otherwise', reasons: ['it comes to where it is', 'then it goes on with the new code'] },
        { verdict: 'otherwise' }
      ]
    ],
    [
      'a question in the middle',
      "await ask(inputRequired('How many?'))",
      "await ask(inputRequired('Really?'))\n  await ask(inputRequired('How many?'))",
      10,
      [
        { verdict: 'otherwise', word: 3, before: 'question "How many?"', after: 'question "Really?"' },
        { verdict: 'not restored', word: 4, before: 'sleep', after: 'question "How many?"' }
      ]
    ],
    [
      'a word of another kind',
      "emit(progress('begins'))",
      'await sleep(5)',
      10,
      [
        { verdict: 'not restored', word: 1, before: 'progress "begins"', after: 'sleep' },
        { verdict: 'not restored', word: 1 }
      ]
    ],
    [
      'a renamed step',
      "step('price'",
      "step('cost'",
      11,
      [
        { verdict: 'depends', word: 2, before: 'artifact "bill" "price 3"', after: 'step cost' },
        {
          verdict: 'depends',
          reasons: [/^it needs step cost, which the record does not have; word 2: it was artifact/]
        }
      ]
    ],
    [
      'a step in the middle',
      "await ask(inputRequired('How many?'))",
      "await step('more', () => { throw new Error('a step of a trial') })\n  await ask(inputRequired('How many?'))",
      11,
      [
        { verdict: 'depends', word: 3, before: 'question "How many?"', after: 'step more' },
        { verdict: 'depends', word: 3 }
      ]
    ],
    [
      'another artifact',
      "'price ' + price",
      "'cost ' + price",
      11,
      [
        { verdict: 'otherwise', word: 2, before: 'artifact "bill" "price 3"', after: 'artifact "bill" "cost 3"' },
        { verdict: 'otherwise', word: 2 }
      ]
    ],
    [
      'an end before its questions',
      "await ask(inputRequired('How many?'))",
      'return',
      10,
      [
        { verdict: 'not restored', word: 3, before: 'question "How many?"', after: 'end of the work' },
        { verdict: 'not restored' }
      ]
    ],
    [
      'code that throws',
      "emit(progress('begins'))",
      "throw new Error('no luck')",
      10,
      [{ verdict: 'not restored', reasons: [/no luck/] }, { verdict: 'not restored' }]
    ],
    [
      'new code behind a patch',
      "await ask(inputRequired('How many?'))",
      "if (patch('sure')) await ask(inputRequired('Really?'))\n  await ask(inputRequired('How many?'))",
      11,
      [{ verdict: 'otherwise', reasons: [/^it comes to where it is$/, /./] }, { verdict: 'otherwise' }]
    ],
    [
      'an actor',
      "emit(progress('begins'))",
      'spawn({ transition: state => state, getInitialSnapshot: () => ({}) })',
      11,
      [{ verdict: 'depends', reasons: [/the actor that it spawns/] }, { verdict: 'depends' }]
    ],
    [
      'a question in another form',
      "ask(inputRequired('How many?'))",
      "ask(inputRequired('How many?', { schema }))",
      11,
      [
        { verdict: 'other answer', word: 3 },
        { verdict: 'other answer', word: 3 }
      ]
    ],
    [
      'an end before a sleep',
      'await sleep(1000000)',
      'return',
      11,
      [{ verdict: 'otherwise' }, { verdict: 'otherwise', word: 4, before: 'sleep', after: 'end of the work' }]
    ],
    [
      'no step',
      "await step('price', () => 3)",
      '3',
      11,
      [
        {
          verdict: 'depends',
          configuration: 'a function',
          before: 'step price',
          after: 'wait for an answer to word 3'
        },
        { verdict: 'depends', before: 'step price', after: 'sleep' }
      ]
    ],
    [
      'a wait for something else',
      "emit(progress('begins'))",
      'await new Promise(() => {})',
      11,
      [
        { verdict: 'depends', reasons: ['its code waits for something that taskchart does not see'] },
        { verdict: 'depends' }
      ]
    ]
  ]
  for (const [name, from, to, code, verdicts] of rows) {
    const agent = `${SCHEMA}${FUNCTION.replace('{ ask,', '{ patch, spawn, ask,').replace(from, to)}`
    const found = await diff(agent, ['-o', 'lines'])
    t.equal(found.code, code, name)
    t.match(linesOf(found.stdout), verdicts, name)
  }
  const text = (await diff(FUNCTION.replace("step('price'", "step('cost'"))).stdout
  t.match(text, /word 2 +depends +it needs step cost, .*\n +2 tasks: /)
  t.strictSame(await runtime.listTasks({}), before, 'nothing was written')
})

/** A store of before definitions. */
const without = (store: Store): Store => {
  const older = { ...store }
  delete older.writeDefinition
  return older
}

await t.test('tasks without a definition are restored in a trial, and said to have none', async t => {
  const { diff } = await stored(t, CHART, [[], ['no']], without)
  const same = await diff(CHART)
  t.equal(same.code, 11)
  t.match(
    same.stdout,
    /No definition was stored: older tasks have none\.\nTasks in\n {2}asking +not compared +it is restored/
  )
  const gone = CHART.replace("target: 'waiting'", "target: 'resting'").replace('    waiting:', '    resting:')
  t.match(await diff(gone), { code: 10, stdout: /waiting +not restored/ })
  t.match(await diff(CHART, ['-o', 'svg']), { code: 1, stderr: /no open task has a definition/ })
  t.match(await diff(CHART, ['-o', 'html']), { code: 11, stdout: /<p>No definition was stored[^]*not compared/ })
})

await t.test('a function without a definition runs with its journal', async t => {
  const functions = await stored(t, FUNCTION, [[]], without)
  t.match(await functions.diff(FUNCTION), { code: 11, stdout: /a function +not compared +it comes to where it is/ })
})

await t.test('a definition that is lost is named', async t => {
  const { diff, cwd } = await stored(t, CHART, [[]])
  const database = driverOf(undefined)(join(cwd, 'tasks.db'), false)
  database.prepare('DELETE FROM sends').run()
  database.close()
  t.match(await diff(CHART), { code: 11, stdout: /The definition [\w-]{22} is not in the store\./ })
})

await t.test('a definition of another taskchart is named', async t => {
  const other = await stored(t, CHART, [[]], store => ({
    ...store,
    writeDefinition: (digest, text, atMs) =>
      (store.writeDefinition as NonNullable<Store['writeDefinition']>)(digest, text.replace('1', '7'), atMs)
  }))
  t.match((await other.diff(CHART, ['-o', 'markdown'])).stdout, /stored by another taskchart, in form 7/)
})

await t.test('damaged tasks are named, and the others compared', async t => {
  const { cwd, ids, diff } = await stored(t, CHART, [[], []])
  const database = driverOf(undefined)(join(cwd, 'tasks.db'), false)
  database.prepare('UPDATE snapshots SET snapshot = ? WHERE task = 1').run('{}')
  database.close()
  const { code, stdout, stderr } = await diff(CHART)
  t.equal(code, 10)
  t.match(stderr, /^taskchart: .* cannot be read: its stored data is damaged/)
  t.match(stdout, new RegExp(`unknown state +not restored +its stored data is damaged\n +1 task: ${ids[0]}`))
  t.match(stdout, new RegExp(`asking +same +1 task: ${ids[1]}`))
})

await t.test('an empty file, a missing file and wrong usage are reported', async t => {
  const cwd = t.testdir({ 'new.mjs': CHART })
  const run = (...args: string[]) => runCommand(['diff', ...args], { cwd })
  await sqliteStore(join(cwd, 'empty.db')).close()
  t.strictSame(await run('--db', 'empty.db', 'new.mjs'), {
    code: 0,
    stdout: '0 open tasks, version 1 now\n',
    stderr: ''
  })
  t.match(await run('--db', 'none.db', 'new.mjs'), { code: 1, stdout: '', stderr: /none\.db/ })
  t.match(await run('--db', 'empty.db'), { code: 2, stderr: /NEW\.ts\|js is missing/ })
  t.match(await run('--db', 'empty.db', 'none.mjs'), { code: 1, stderr: /There is no file/ })
  t.match(await run('--db', 'empty.db', 'new.mjs', '--since', 'HEAD'), { code: 2, stderr: /exclude each other/ })
  t.match(await run('--db', 'empty.db', 'new.mjs', '-o', 'yaml'), { code: 2, stderr: /There is no -o yaml. .*lines/ })
  t.match(await run('new.mjs', 'new.mjs', '-o', 'lines'), { code: 2, stderr: /There is no -o lines/ })
})

await t.test('a terminal shows the progress, and Ctrl-C stops it', async t => {
  const { diff } = await stored(t, CHART, [[]])
  const screen = new Screen()
  let timers = 0
  const clock = {
    now: () => 0,
    setTimeout: (call: () => void) => void ((timers += 1) === 1 && call()),
    clearTimeout() {}
  }
  const drawn: string[] = []
  const { code } = await diff(CHART, [], {
    clock,
    terminal: { columns: 80, hasColours: false },
    heard: text => {
      screen.write(text)
      drawn.push(screen.last ?? '')
    }
  })
  t.strictSame([code, drawn[0]], [0, 'comparing: 0 tasks'])
  t.match(await diff(CHART, [], { signal: AbortSignal.abort() }), { code: 130, stdout: '' })
})
