import '../../../fixtures/stores/needs-sqlite.ts'
import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { sqliteStore } from '../../../../adapters/storage/sqlite.ts'
import type { Agent } from '../../../../runtime/index.ts'
import { createRuntime } from '../../../../runtime/runtime.ts'
import { runCommand } from '../../../fixtures/cli/run-command.ts'
import { recordingLogger, say, taskIn } from '../../../fixtures/runtime/runtime-helpers.ts'
import { edit, opening } from '../../../fixtures/stores/stored-tasks.ts'

/** An agent that asks in its first state, then in `sugar`. */
const agentOf = ({ first = 'choosing', version = '1', more = '', sugar = 'sugar', served = 'served' }) => `
import { defineAgent, fromPromise, propertiesOf, setupWork, textOf } from 'taskchart'
import { assign } from 'xstate'
const work = setupWork({ actors: { wait: fromPromise(() => new Promise(() => {})) } }).createMachine({
  id: 'order',
  context: { size: '' },
  initial: '${first}',
  states: {
    ${first}: {
      tags: 'input-required',
      meta: { prompt: 'Which size?' },
      on: { 'message.received': { target: '${sugar}', actions: assign({ size: ({ event }) => textOf(event.message) }) } }
    },
    ${sugar}: {
      tags: 'input-required',
      meta: { prompt: 'Sugar?' },
      invoke: { id: 'waiting', src: 'wait' },
      on: { 'message.received': '${served}' }
    },
    spare: { tags: 'input-required', on: { 'message.received': '${served}' } },
    served: { type: 'final' }
  }
})
const { always, never, leadsTo } = propertiesOf(work)
export default defineAgent({ card: { name: 'A' }, work, version: '${version}'${more} })
`
const FILES = {
  'one.mjs': agentOf({}),
  'renamed.mjs': agentOf({ first: 'asking', version: '2', more: ", renamed: { states: { choosing: 'asking' } }" }),
  'migrating.mjs': agentOf({
    first: 'asking',
    version: '2',
    more: `, migrate: ({ snapshot: { context, value, ...snapshot } }) =>
        ({ ...snapshot, value: value === 'choosing' ? 'asking' : value, context: { sizes: [context.size] } }),
      properties: {
        'it has a size': always(({ context }) => context.sizes[0] !== ''),
        'it never asks': never('asking'),
        'sugar is asked for': leadsTo('asking', 'sugar'),
        'the client waits at most once': never(({ hasTag }) => false)
      }`
  }),
  'smaller.mjs': agentOf({
    version: '2',
    more: ", migrate: ({ snapshot }) => ({ ...snapshot, context: { size: 'small' } })"
  }),
  'lost.mjs': agentOf({ first: 'asking', version: '2' }),
  'endless.mjs': agentOf({ version: '2', served: 'sugar' }),
  'earlier.mjs': `import one from './one.mjs'\nimport { defineAgent } from 'taskchart'
export default defineAgent({ card: { name: 'A' }, work: async () => {}, version: '2', earlier: { '1': one.work } })`,
  'pausing.mjs': `import { defineAgent, setupWork } from 'taskchart'
const work = setupWork({}).createMachine({
  id: 'order',
  initial: 'shop',
  states: {
    shop: {
      initial: 'choosing',
      states: { choosing: { tags: 'input-required' }, back: { type: 'history' } },
      on: { 'message.received': 'paused' }
    },
    paused: { tags: 'input-required', on: { 'message.received': 'shop.back' } }
  }
})
export default defineAgent({ card: { name: 'A' }, work, version: '1' })`,
  'beside.mjs': `import one from './one.mjs'\nimport { defineAgent } from 'taskchart'
export default defineAgent({ card: { name: 'A' }, work: one.work, version: '2', earlier: { '0': async () => {} } })`,
  'function.mjs': `import { defineAgent } from 'taskchart'
export default defineAgent({ card: { name: 'A' }, work: async ({ sleep }) => sleep(1e9), version: '1' })`,
  'longer.mjs': `import { defineAgent } from 'taskchart'
export default defineAgent({ card: { name: 'A' }, work: async ({ sleep, step }) => { await sleep(1e9); await step('x', () => 1) }, version: '1' })`,
  'other.mjs': `import { defineAgent } from 'taskchart'
export default defineAgent({ card: { name: 'A' }, work: async ({ ask }) => ask('Which?'), version: '1' })`
}

/** A file with tasks of version 1: so many that have only begun, and one with another message. */
async function stored(t: Test, { agent = 'one.mjs', choosing = 1 } = {}) {
  const cwd = t.testdir(FILES)
  const { default: first } = (await import(pathToFileURL(join(cwd, agent)).href)) as { default: Agent }
  const isAsking = agent !== 'function.mjs'
  const runtime = createRuntime({
    agent: first,
    store: sqliteStore(join(cwd, 'tasks.db')),
    logger: recordingLogger().logger
  })
  const ids: string[] = []
  for (let n = 0; n <= choosing; n += 1)
    ids.push(taskIn(await runtime.sendMessage(say('go', {}, { returnImmediately: !isAsking }))).id)
  const chosen = ids.at(-1) ?? ''
  if (isAsking) await runtime.sendMessage(say('large', { taskId: chosen }))
  await runtime.close()
  const migrate = async (file: string, ...args: string[]) => {
    const before = bytesIn(cwd)
    const done = await runCommand(['tasks', 'migrate', file, '--dry-run', '--db', 'tasks.db', ...args], { cwd })
    t.strictSame(bytesIn(cwd), before, 'the file has the same bytes')
    return done
  }
  return { cwd, choosing: ids.slice(0, -1), chosen, migrate }
}

/** Stores the snapshots of all tasks of a file that nobody has open, changed. */
async function rewrite(cwd: string, change: (snapshot: string) => string): Promise<void> {
  const store = sqliteStore(join(cwd, 'tasks.db'))
  const scope = { tenant: '', principal: 'anonymous' }
  for (const { task } of (await store.listTasks(scope, { limit: 100 })).tasks) {
    const key = { ...scope, contextId: task.contextId }
    const { commit = 0, snapshot = '', tasks = [] } = (await store.loadContext(key)) ?? {}
    const changed = tasks.map(row => ({ ...row, snapshot: change(String(row.snapshot)) }))
    const unchanged = { log: [], journal: [], sends: [], webhooks: [] }
    await store.commit({ key, expected: commit, atMs: 0, snapshot, tasks: changed, ...unchanged })
  }
  await store.close?.()
}

const bytesIn = (cwd: string) => readFileSync(join(cwd, 'tasks.db')).toString('latin1')

await t.test('tasks migrate shows each open task before and after, and writes nothing', async t => {
  const {
    choosing: [waiting = ''],
    chosen,
    migrate
  } = await stored(t)
  const renamed = await migrate('renamed.mjs')
  t.equal(renamed.code, 0)
  t.strictSame(
    renamed.stdout.split('\n').toSorted(),
    [
      '',
      `same          ${chosen}  version 1 → 2  sugar`,
      `same          ${waiting}  version 1 → 2  choosing → asking`
    ].toSorted()
  )
  t.equal(renamed.stderr, '2 tasks: 2 same\n')
  const [line] = JSON.parse((await migrate('renamed.mjs', '-o', 'json')).stdout).filter(
    ({ taskId }: { taskId: string }) => taskId === chosen
  )
  t.strictSame(line, {
    tenant: '',
    principal: 'anonymous',
    contextId: line.contextId,
    taskId: chosen,
    state: 'TASK_STATE_INPUT_REQUIRED',
    from: '1',
    to: '2',
    before: { state: 'sugar', context: { size: 'large' }, actors: { waiting: 'wait' } },
    after: { state: 'sugar', context: { size: 'large' }, actors: { waiting: 'wait' } },
    verdict: 'same',
    reasons: [],
    violated: []
  })
})

await t.test('tasks migrate says what cannot go on, and which properties are violated', async t => {
  const {
    choosing: [waiting = ''],
    chosen,
    migrate
  } = await stored(t)
  const lost = await migrate('lost.mjs')
  t.match(lost, {
    code: 10,
    stdout: new RegExp(
      `^not restored  ${waiting}  version 1 → 2  choosing\n {14}This task cannot be resumed with the present agent: the chart has no state order.choosing.`,
      'm'
    ),
    stderr: /1 not restored/
  })
  t.match(await migrate('endless.mjs'), {
    code: 11,
    stdout: new RegExp(`^otherwise     ${waiting} .*\n.*\n {14}endings that are gone: served`, 'm')
  })
  const migrating = await migrate('migrating.mjs')
  t.equal(migrating.code, 10)
  const lines = migrating.stdout.split('\n')
  const at = lines.indexOf(`depends       ${waiting}  version 1 → 2  choosing → asking`)
  t.strictSame(lines.slice(at + 1, at + 6), [
    '              without migrate it could not be restored: the chart has no state order.choosing',
    '              depends on migrate, which converts the stored chart',
    '              context: size is gone, sizes is new',
    '              violates "it has a size"',
    '              violates "it never asks"'
  ])
  t.match(lines, [], 'others hold')
  const other = JSON.parse((await migrate('migrating.mjs', '-o', 'json')).stdout).find(
    ({ taskId }: { taskId: string }) => taskId === chosen
  )
  t.match(other, { verdict: 'depends', violated: [], after: { context: { sizes: ['large'] } } })
  t.match((await migrate('smaller.mjs')).stdout, /\n {14}context: size has changed\n/)
})

await t.test('tasks migrate knows the work that earlier keeps, and functions', async t => {
  const { migrate } = await stored(t)
  t.match(await migrate('earlier.mjs'), { code: 0, stdout: /^same +\S+ {2}version 1 {2}choosing$/m })
  t.match(await migrate('beside.mjs'), { code: 0, stdout: /^same +\S+ {2}version 1 → 2 {2}choosing$/m }, 'not in it')
  const functions = await stored(t, { agent: 'function.mjs' })
  t.match(await functions.migrate('function.mjs'), {
    code: 0,
    stdout: /^same +\S+ {2}version 1$/m
  })
  t.match(await functions.migrate('longer.mjs'), {
    code: 11,
    stdout: /^otherwise +\S+ {2}version 1\n +it comes to where it is\n +then it goes on with the new code$/m
  })
  t.match(await functions.migrate('other.mjs'), {
    code: 10,
    stdout: /^not restored +\S+ {2}version 1\n +\S/m
  })
  t.match(await functions.migrate('one.mjs'), { code: 10, stdout: /the work was no statechart, and is one now/ })
})

await t.test('tasks migrate takes a sample that is spread over all tasks, and tasks of some callers', async t => {
  const { migrate } = await stored(t, { choosing: 9 })
  const sampled = await migrate('renamed.mjs', '--sample', '4', '--json')
  t.equal(sampled.stdout.split('\n').length, 5)
  t.equal(sampled.stderr, '4 tasks: 4 same, a sample of 10 open tasks\n')
  t.match(await migrate('renamed.mjs', '--sample', '50'), { stderr: '10 tasks: 10 same, a sample of 10 open tasks\n' })
  t.match(await migrate('renamed.mjs', '--principal', 'bob'), { code: 0, stdout: '', stderr: '0 tasks\n' })
  t.equal((await migrate('renamed.mjs', '--tenant', 'other', '-o', 'json')).stdout, '[]\n')
  t.match(await migrate('renamed.mjs', '--sample', '0'), {
    code: 2,
    stderr: /--sample takes a number from 1 on, not "0"/
  })
})

await t.test('tasks migrate says of a task why it cannot say more', async t => {
  const { cwd, choosing, chosen, migrate } = await stored(t)
  const change = (sql: string) => edit(join(cwd, 'tasks.db'), database => database.exec(sql))
  change('DELETE FROM sends')
  t.match(await migrate('renamed.mjs'), {
    code: 11,
    stdout: new RegExp(
      `^not compared  ${chosen} .*\n {14}it is restored\n {14}The definition \\S+ is not in the store\\.$`,
      'm'
    )
  })
  change("UPDATE snapshots SET snapshot = 'x' WHERE task = 1")
  const damaged = await migrate('renamed.mjs')
  t.match(damaged, { code: 10, stderr: /^taskchart: .*its stored data is damaged/ })
  t.notMatch(damaged.stdout, choosing[0], 'it is left out')
})

await t.test('tasks migrate says of a task from before versions or definitions existed that it is so old', async t => {
  const { cwd, chosen, migrate } = await stored(t)
  await rewrite(cwd, text => JSON.stringify({ ...JSON.parse(text), version: undefined, definition: undefined }))
  t.match(await migrate('endless.mjs'), {
    code: 11,
    stdout: new RegExp(
      `^not compared  ${chosen}  version none → 2  sugar\n {14}it is restored\n {14}No definition was stored: older tasks have none\\.$`,
      'm'
    ),
    stderr: '2 tasks: 2 not compared\n'
  })
})

await t.test(
  'tasks migrate says that a task is in a state to which no transition leads, or from a newer taskchart',
  async t => {
    const { cwd, chosen, migrate } = await stored(t)
    await rewrite(cwd, text => text.replace('"value":"choosing"', '"value":"spare"'))
    t.match(await migrate('endless.mjs'), {
      code: 11,
      stdout:
        /^unknown {7}\S+ {2}version 1 → 2 {2}spare\n {14}the stored definition does not come to this configuration$/m
    })
    await rewrite(cwd, text => text.replace('"format":1', '"format":99'))
    t.match(await migrate('endless.mjs'), {
      code: 10,
      stdout: new RegExp(`^not restored  ${chosen}  version none → 2\n {14}.*newer`, 'm'),
      stderr: '2 tasks: 2 not restored\n'
    })
  }
)

await t.test('tasks migrate knows history states, and tasks whose work has not begun', async t => {
  const paused = await stored(t, { agent: 'pausing.mjs' })
  const { stdout, code } = await paused.migrate('pausing.mjs')
  t.equal(code, 0)
  t.match(stdout, `same          ${paused.chosen}  version 1  paused\n`)
  t.match(stdout, `same          ${paused.choosing[0]}  version 1  shop.choosing\n`)
  const store = sqliteStore(join(paused.cwd, 'tasks.db'))
  const { tasks, ...others } = opening('begins')
  const snapshot = '{"format":1,"version":"1","status":"active"}'
  await store.commit({ ...others, tasks: tasks.map(row => ({ ...row, snapshot })) })
  await store.close?.()
  t.match(await paused.migrate('pausing.mjs', '--principal', 'anna'), {
    code: 11,
    stdout: /^not compared {2}begins {2}version 1\n {14}it has not begun, and begins with the new code$/m
  })
})

await t.test('tasks migrate leaves out a task that ends meanwhile', async t => {
  const { cwd, choosing, chosen } = await stored(t)
  const [file, ended] = [join(cwd, 'tasks.db'), join(cwd, 'ended.db')]
  copyFileSync(file, ended)
  const { default: agent } = (await import(pathToFileURL(join(cwd, 'one.mjs')).href)) as { default: Agent }
  const runtime = createRuntime({ agent, store: sqliteStore(ended), logger: recordingLogger().logger })
  for (const id of [...choosing, chosen]) await runtime.cancelTask({ id })
  await runtime.close()
  let lines = 0
  const printed = () => {
    lines += 1
    if (lines === 1)
      edit(file, database => {
        database.exec(`ATTACH '${ended}' AS ended`)
        for (const table of ['tasks', 'snapshots'])
          database.exec(`DELETE FROM main.${table}; INSERT INTO main.${table} SELECT * FROM ended.${table}`)
      })
  }
  const argv = ['tasks', 'migrate', 'one.mjs', '--dry-run', '--db', 'tasks.db']
  t.match(await runCommand(argv, { cwd, printed }), { code: 0, stderr: '1 task: 1 same\n' })
  t.equal(lines, 1)
})

await t.test('tasks migrate needs --dry-run and a store', async t => {
  const cwd = t.testdir(FILES)
  const run = (...args: string[]) => runCommand(['tasks', 'migrate', ...args], { cwd })
  t.match(await run('one.mjs', '--db', 'tasks.db'), {
    code: 2,
    stderr: /Servers migrate tasks when they load them.*--dry-run/
  })
  t.match(await run('one.mjs', '--dry-run'), { code: 2, stderr: /--db FILE is missing/ })
  t.match(await run('--dry-run', '--db', 'tasks.db'), { code: 2, stderr: /AGENT.ts\|js is missing/ })
})
