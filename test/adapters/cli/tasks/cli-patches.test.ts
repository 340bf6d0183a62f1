import '../../../fixtures/stores/needs-sqlite.ts'
import { join } from 'node:path'
import t from 'tap'
import { sqliteStore } from '../../../../adapters/storage/sqlite.ts'
import { inputRequired, type WorkFunction } from '../../../../runtime/index.ts'
import { runCommand } from '../../../fixtures/cli/run-command.ts'
import { lives } from '../../../fixtures/runtime/lives.ts'
import { open, reaches } from '../../../fixtures/runtime/runtime-helpers.ts'
import { edit } from '../../../fixtures/stores/stored-tasks.ts'
import { answer, waitsFor } from '../../../fixtures/stores/patch-suite.ts'

/** Asks twice; with a patch between the questions. */
const code =
  (...patches: string[]): WorkFunction =>
  async ({ ask, patch }) => {
    await ask(inputRequired('Size?'))
    for (const name of patches) patch(name)
    await ask(inputRequired('Name?'))
  }

await t.test('tasks patches says which patches can be retired, and which tasks need what was before', async t => {
  const cwd = t.testdir()
  const store = sqliteStore(join(cwd, 'tasks.db'))
  const patches = (...args: string[]) => runCommand(['tasks', 'patches', '--db', 'tasks.db', ...args], { cwd })
  const life = lives(t, { work: code() }, { store })
  t.teardown(() => store.close())
  t.match(await patches(), { code: 0, stdout: '', stderr: 'No open task has come to a patch.\n' })
  const task = async () => {
    const { id } = await open(life.runtime)
    await waitsFor(life, id, 'Size?')
    return id
  }
  const goesOn = async (id: string) => {
    await answer(life, id, 'Large')
    await waitsFor(life, id, 'Name?')
  }
  const [passed, waiting, asked] = [await task(), await task(), await task()]
  await goesOn(passed)
  life.clock.increment(1000)
  await life.restart({ work: code('tax', 'card\u001b[31m') })
  await goesOn(asked)
  life.clock.increment(1000)
  await task()
  t.match(await patches(), {
    code: 0,
    stdout: `PATCH     WITH  WITHOUT  UNKNOWN  CAN BE RETIRED
card[31m  1     0        2        no: not asked yet ${passed}, ${waiting}
tax       1     0        2        no: not asked yet ${passed}, ${waiting}
`
  })
  await answer(life, passed, 'Ada')
  await reaches(life.runtime, passed, 'completed')
  await life.restart({ work: code('tax') })
  t.match(await patches('--json'), {
    stdout: `{"patch":"card\\u001b[31m","with":1,"without":[],"unknown":["${waiting}"],"canBeRetired":false}
{"patch":"tax","with":1,"without":[],"unknown":["${waiting}"],"canBeRetired":false}
`
  })
  t.match(JSON.parse((await patches('-o', 'json')).stdout), [{ patch: /^card/ }, { patch: 'tax', canBeRetired: false }])
  await goesOn(waiting)
  t.match(await patches('--principal', 'anonymous', '--tenant', ''), { stdout: /\ntax +2 +0 +0 +yes\n$/ })
  t.match(await patches('--principal', 'bob'), { stdout: '', stderr: /No open task/ })
  for (const id of [waiting, asked]) {
    await answer(life, id, 'Ada')
    await reaches(life.runtime, id, 'completed')
  }
  t.match(await patches(), { stdout: '' }, 'tasks that have ended count no more')
})

await t.test('tasks patches names the tasks that go on without a patch', async t => {
  const cwd = t.testdir()
  const store = sqliteStore(join(cwd, 'tasks.db'))
  t.teardown(() => store.close())
  const asksAgain =
    (...patches: string[]): WorkFunction =>
    async work => {
      await code(...patches)(work)
      await work.ask(inputRequired('Colour?'))
    }
  const life = lives(t, { work: asksAgain() }, { store })
  const ids: string[] = []
  for (let n = 0; n < 5; n += 1) {
    const { id } = await open(life.runtime)
    ids.push(id)
    await waitsFor(life, id, 'Size?')
    await answer(life, id, 'Large')
    await waitsFor(life, id, 'Name?')
    life.clock.increment(1000)
  }
  await life.restart({ work: asksAgain('tax') })
  for (const id of ids) {
    await answer(life, id, 'Ada')
    await waitsFor(life, id, 'Colour?')
  }
  const { stdout } = await runCommand(['tasks', 'patches', '--db', 'tasks.db'], { cwd })
  const screen = { columns: 60, hasColours: false }
  const narrow = await runCommand(['tasks', 'patches', '--db', 'tasks.db'], { cwd, screen })
  for (const line of narrow.stdout.split('\n')) t.ok(line.length <= 60, line)
  t.match(stdout, new RegExp(`\ntax +0 +5 +0 +no: without it go on ${ids.slice(0, 3).join(', ')}, and 2 more\n$`))
})

await t.test('tasks patches reports a damaged task, and retires no patch that it may need', async t => {
  const cwd = t.testdir()
  const store = sqliteStore(join(cwd, 'tasks.db'))
  const life = lives(t, { work: code('tax') }, { store })
  for (let n = 0; n < 2; n += 1) {
    const { id } = await open(life.runtime)
    await waitsFor(life, id, 'Size?')
    await answer(life, id, 'Large')
    await waitsFor(life, id, 'Name?')
  }
  await store.close()
  edit(join(cwd, 'tasks.db'), database => database.exec('UPDATE tasks SET messages = 99 WHERE task = 1'))
  t.match(await runCommand(['tasks', 'patches', '--db', 'tasks.db'], { cwd }), {
    code: 0,
    stdout: /\ntax +1 +0 +0 +no: a damaged task may need it\n$/,
    stderr: /^taskchart: The task with the row 1 cannot be read: its stored data is damaged/
  })
})

await t.test('tasks patches is for a file or a database', async t => {
  t.match(await runCommand(['tasks', 'patches']), {
    code: 2,
    stderr: /--db FILE is missing: only a file or database has the journals of tasks\./
  })
  t.match(await runCommand(['tasks', 'patches', '--db', 'x.db', 'ws://127.0.0.1:1/']), {
    code: 2,
    stderr: /one argument too many/
  })
})
