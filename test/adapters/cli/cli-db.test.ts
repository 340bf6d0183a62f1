import '../../fixtures/stores/needs-sqlite.ts'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { copyRows } from '../../../adapters/rows/copied-rows.ts'
import { sqliteStore } from '../../../adapters/storage/sqlite.ts'
import { runCommand } from '../../fixtures/cli/run-command.ts'
import { edit, ending, opening, taskIds } from '../../fixtures/stores/stored-tasks.ts'

await t.test("db backup copies the file of a running server, and prints the copy's size", async t => {
  const cwd = t.testdir()
  const store = sqliteStore(join(cwd, 'tasks.db'))
  t.teardown(() => store.close())
  await store.commit(opening('a'))
  t.match(await runCommand(['db', 'backup', 'tasks.db', 'copy.db'], { cwd }), {
    code: 0,
    stdout: '',
    stderr: /^copy\.db has 0\.\d MiB\.\n$/
  })
  const copy = sqliteStore(join(cwd, 'copy.db'))
  t.teardown(() => copy.close())
  t.strictSame(await taskIds(copy), ['a'])
  t.match(await runCommand(['db', 'backup', 'tasks.db', 'copy.db'], { cwd }), { code: 1, stderr: /copy\.db exists/ })
  t.match(await runCommand(['db', 'backup', 'none.db', 'more.db'], { cwd }), {
    code: 1,
    stderr: /none\.db does not exist/
  })
  t.notOk(existsSync(join(cwd, 'more.db')))
})

await t.test('db vacuum prints the sizes before and after, and needs the file to itself', async t => {
  const cwd = t.testdir()
  const store = sqliteStore(join(cwd, 'tasks.db'))
  await store.commit(opening('a'))
  t.match(await runCommand(['db', 'vacuum', 'tasks.db'], { cwd }), {
    code: 1,
    stderr: /tasks\.db is in use by process/
  })
  await store.close()
  t.match(await runCommand(['db', 'vacuum', 'tasks.db'], { cwd }), {
    code: 0,
    stdout: '',
    stderr: /^tasks\.db had 0\.\d MiB, and has 0\.\d MiB\.\n$/
  })
})

await t.test('db migrate, check and stats read a file', async t => {
  const cwd = t.testdir()
  t.match(await runCommand(['db', 'migrate', 'tasks.db'], { cwd }), {
    code: 0,
    stderr: 'tasks.db has the newest schema.\n'
  })
  const store = sqliteStore(join(cwd, 'tasks.db'))
  for (let i = 0; i < 101; i += 1) await store.commit(opening(`t${i}`))
  await store.commit(ending('t0'))
  await store.close()
  t.match(await runCommand(['db', 'stats', 'tasks.db'], { cwd }), {
    code: 0,
    stdout: 'submitted       100\ncompleted       1\ncallers         1\n'
  })
  t.match(await runCommand(['db', 'check', 'tasks.db'], { cwd }), {
    code: 0,
    stderr: 'tasks.db: 101 tasks are intact, 0 damages were found.\n'
  })
  edit(join(cwd, 'tasks.db'), database =>
    database.exec("UPDATE journal SET body = '1'; UPDATE events SET body = '{}' WHERE generation = 3")
  )
  const { code, stderr } = await runCommand(['db', 'check', 'tasks.db'], { cwd })
  t.equal(code, 1)
  t.match(
    stderr,
    /Task t0 cannot be read[^]*Task t1 cannot be read[^]*tasks\.db: 100 tasks are intact, 101 damages were found/
  )
})

await t.test('db copy copies a file too, and tells how far it is', async t => {
  const cwd = t.testdir()
  const store = sqliteStore(join(cwd, 'one.db'))
  await store.commit(opening('a'))
  await store.close()
  t.match(await runCommand(['db', 'copy', 'one.db', 'two.db'], { cwd }), {
    code: 0,
    stdout: '',
    stderr: 'two.db has 1 tasks of one.db.\n'
  })
  const copy = sqliteStore(join(cwd, 'two.db'))
  t.teardown(() => copy.close())
  t.strictSame(await taskIds(copy), ['a'])
  const page = Array.from({ length: 700 }, () => ({ cells: {}, isDamaged: false }))
  const [source, target] = [
    {
      pages: (table: string) => (table === 'events' ? Array.from({ length: 300 }, () => page) : []),
      close: async () => {}
    },
    { add: async () => {}, finish: async () => {}, close: async () => {} }
  ]
  const told: unknown[] = []
  await copyRows(source, target, (...what) => void told.push(what), new AbortController().signal)
  t.strictSame(told, [
    ['events', 100_100],
    ['events', 200_200]
  ])
})

await t.test('db requires a known action, and the names of both files', async t => {
  t.match(await runCommand(['db']), {
    code: 2,
    stderr: /Say what to do with the file: backup, copy, vacuum, migrate, check or stats/
  })
  t.match(await runCommand(['db', 'restore']), {
    code: 2,
    stderr: /A file has no "restore"\. There are: backup, copy, vacuum, migrate, check, stats/
  })
  t.match(await runCommand(['db', 'backup', 'tasks.db']), { code: 2, stderr: /TO is missing/ })
})
