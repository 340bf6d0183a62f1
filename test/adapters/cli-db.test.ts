import '../fixtures/needs-sqlite.ts'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sqliteStore } from '../../adapters/storage/sqlite.ts'
import { runCommand } from '../fixtures/run-command.ts'
import { opening, taskIds } from '../fixtures/stored-tasks.ts'

await t.test('db backup copies the file of a running server, and says how large the copy is', async t => {
  const cwd = t.testdir()
  const store = sqliteStore(join(cwd, 'tasks.db'))
  t.teardown(() => store.close())
  await store.commit(opening('a'))
  t.match(await runCommand(['db', 'backup', 'tasks.db', 'copy.db'], { cwd }), { code: 0, stdout: '', stderr: /^copy\.db has 0\.\d MiB\.\n$/ })
  const copy = sqliteStore(join(cwd, 'copy.db'))
  t.teardown(() => copy.close())
  t.strictSame(await taskIds(copy), ['a'])
  t.match(await runCommand(['db', 'backup', 'tasks.db', 'copy.db'], { cwd }), { code: 1, stderr: /copy\.db exists/ })
  t.match(await runCommand(['db', 'backup', 'none.db', 'more.db'], { cwd }), { code: 1, stderr: /none\.db does not exist/ })
  t.notOk(existsSync(join(cwd, 'more.db')))
})

await t.test('db vacuum says how large a file was and is, and needs the file to itself', async t => {
  const cwd = t.testdir()
  const store = sqliteStore(join(cwd, 'tasks.db'))
  await store.commit(opening('a'))
  t.match(await runCommand(['db', 'vacuum', 'tasks.db'], { cwd }), { code: 1, stderr: /tasks\.db is in use by process/ })
  await store.close()
  t.match(await runCommand(['db', 'vacuum', 'tasks.db'], { cwd }), { code: 0, stdout: '', stderr: /^tasks\.db had 0\.\d MiB, and has 0\.\d MiB\.\n$/ })
})

await t.test('db asks for an action that it has, and for the names of both files', async t => {
  t.match(await runCommand(['db']), { code: 2, stderr: /Say what to do with the file: backup or vacuum/ })
  t.match(await runCommand(['db', 'restore']), { code: 2, stderr: /A file has no "restore": backup or vacuum/ })
  t.match(await runCommand(['db', 'backup', 'tasks.db']), { code: 2, stderr: /TO is missing/ })
})
