import '../../../fixtures/stores/needs-sqlite.ts'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { driverOf } from '../../../../adapters/storage/driver.ts'
import { sqliteStore } from '../../../../adapters/storage/sqlite.ts'
import { createRuntime, defineAgent, setupWork } from '../../../../runtime/index.ts'
import { Screen } from '../../../fixtures/cli/screen.ts'
import { runCommand, type Surroundings } from '../../../fixtures/cli/run-command.ts'
import { recordingLogger, say, taskIn } from '../../../fixtures/runtime/runtime-helpers.ts'

const source = (state: string, more = '') => `
import { defineAgent, setupWork } from 'taskchart'
const work = setupWork({}).createMachine({ id: 'work', initial: '${state}', states: { '${state}': { tags: 'input-required', on: { 'message.received': {} } }, b: { tags: 'input-required', on: { 'message.received': {} } } } })
export default defineAgent({ card: { name: 'A' }, work, version: '2'${more} })
`

/** A folder with a file of two tasks that wait, and agents that may take them up. */
async function stored(t: Test) {
  const cwd = t.testdir({
    'same.ts': source('a'),
    'changed.ts': source('c'),
    'migrating.ts': source(
      'c',
      ", migrate: ({ snapshot }) => (snapshot.value === 'b' ? snapshot : { ...snapshot, value: 'c' })"
    ),
    'function.js':
      "import { defineAgent } from 'taskchart'\nexport default defineAgent({ card: { name: 'A' }, work: async () => {} })"
  })
  const work = setupWork({}).createMachine({
    id: 'work',
    initial: 'a',
    states: {
      a: { tags: 'input-required', on: { 'message.received': 'b' } },
      b: { tags: 'input-required', on: { 'message.received': {} } }
    }
  })
  const runtime = createRuntime({
    agent: defineAgent({ card: { name: 'A' }, work, version: '1' }),
    store: sqliteStore(join(cwd, 'tasks.db')),
    logger: recordingLogger().logger
  })
  t.teardown(() => runtime.close())
  const ids = [taskIn(await runtime.sendMessage(say('one'))).id, taskIn(await runtime.sendMessage(say('two'))).id]
  await runtime.sendMessage(say('on', { taskId: ids[1] ?? '' }))
  return {
    cwd,
    ids,
    replay: (args: readonly string[], more?: Surroundings) => runCommand(['replay', ...args], { cwd, ...more })
  }
}

await t.test('every resumable task is listed, also while a server uses the file', async t => {
  const {
    ids: [one = '', two = ''],
    replay
  } = await stored(t)
  const same = await replay(['same.ts', '--db', 'tasks.db'])
  t.strictSame(
    [same.code, same.stdout.split('\n').toSorted(), same.stderr],
    [0, ['', `ok          ${one}`, `ok          ${two}`].toSorted(), '2 tasks: 2 ok\n']
  )
  const migrating = await replay(['migrating.ts', '--db', 'tasks.db'])
  t.strictSame([migrating.code, migrating.stderr], [0, '2 tasks: 2 migrates\n'])
})

await t.test('tasks that cannot resume are listed last, with the reason and exit code 10', async t => {
  const {
    ids: [one = '', two = ''],
    replay
  } = await stored(t)
  const reason =
    'This task cannot be resumed with the present agent: the chart has no state work.a. It was stored by version 1, and this is version 2.'
  const { code, stdout, stderr } = await replay(['changed.ts', '--db', 'tasks.db'])
  t.strictSame([code, stdout], [10, `ok          ${two}\nfails       ${one}: ${reason}\n`])
  t.match(stderr, /^2 tasks: (?:1 ok, 1 fails|1 fails, 1 ok)\n$/)
  const json = await replay(['changed.ts', '--db', 'tasks.db', '--json'])
  t.equal(json.code, 10)
  t.match(
    json.stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as object),
    [
      {
        taskId: two,
        principal: 'anonymous',
        tenant: '',
        state: 'TASK_STATE_INPUT_REQUIRED',
        outlook: 'ok',
        storedVersion: '1'
      },
      { taskId: one, outlook: 'fails', reason }
    ]
  )
  t.equal((await replay(['function.js', '--db', 'tasks.db'])).code, 10)
})

await t.test('a terminal shows the progress, and clears it at the end', async t => {
  const { replay } = await stored(t)
  const screen = new Screen()
  let timers = 0
  // The first timer is that of the line, which is drawn at once; others never come.
  const clock = {
    now: () => 0,
    setTimeout: (call: () => void) => void ((timers += 1) === 1 && call()),
    clearTimeout() {}
  }
  const drawn: string[] = []
  const { code } = await replay(['same.ts', '--db', 'tasks.db'], {
    clock,
    terminal: { columns: 80, hasColours: false },
    heard: text => {
      screen.write(text)
      drawn.push(screen.last ?? '')
    }
  })
  t.equal(code, 0)
  t.strictSame([drawn[0], screen.lines], ['replaying: 0 tasks', ['2 tasks: 2 ok', '']])
})

await t.test('an empty file, a missing file and wrong usage are reported', async t => {
  const { cwd, replay } = await stored(t)
  await sqliteStore(join(cwd, 'empty.db')).close()
  t.strictSame(await replay(['same.ts', '--db', 'empty.db']), { code: 0, stdout: '', stderr: '0 tasks\n' })
  t.match(await replay(['same.ts', '--db', 'none.db']), { code: 1, stdout: '', stderr: /none\.db/ })
  t.match(await replay(['same.ts']), { code: 2, stderr: /^taskchart: --db FILE is missing\.\nUsage: taskchart replay/ })
  t.match(await replay(['none.ts', '--db', 'tasks.db']), { code: 1, stderr: /There is no file/ })
})

await t.test('damaged tasks are named, and the others listed', async t => {
  const {
    cwd,
    ids: [one = '', two = ''],
    replay
  } = await stored(t)
  const database = driverOf(undefined)(join(cwd, 'tasks.db'), false)
  database.prepare('UPDATE tasks SET messages = 99 WHERE taskId = ?').run(one)
  database.close()
  const { stdout, stderr } = await replay(['same.ts', '--db', 'tasks.db'])
  t.equal(stdout, `ok          ${two}\n`)
  t.match(stderr, /^taskchart: .* cannot be read: its stored data is damaged/)
})

await t.test('Ctrl-C stops it', async t => {
  const { replay } = await stored(t)
  t.match(await replay(['same.ts', '--db', 'tasks.db'], { signal: AbortSignal.abort() }), { code: 130, stdout: '' })
})
