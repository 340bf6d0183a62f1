import '../../fixtures/stores/needs-sqlite.ts'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { backupFile } from '../../../adapters/storage/file/maintenance.ts'
import { rowsOf } from '../../../adapters/rows/commit-rows.ts'
import { driverOf } from '../../../adapters/storage/driver.ts'
import { Engine } from '../../../adapters/storage/engine.ts'
import { openForWriting, prepareFile } from '../../../adapters/storage/file/open-file.ts'
import { readSqlite, sqliteStore } from '../../../adapters/storage/sqlite.ts'
import type { StorageError } from '../../../adapters/rows/damage.ts'
import { keepResult } from '../../fixtures/kills/guarantee-results.ts'
import { DRIVERS, edit, opening, quiet, taskIds } from '../../fixtures/stores/stored-tasks.ts'

/** A folder with the open store `live.db`, in which these tasks are stored. */
async function live(
  t: Test,
  { ids = ['a', 'b'], ...options }: { ids?: readonly string[] } & Parameters<typeof sqliteStore>[1] = {}
) {
  const dir = t.testdir()
  const file = join(dir, 'live.db')
  const store = sqliteStore(file, options)
  t.teardown(() => store.close())
  for (const id of ids) await store.commit(opening(id))
  return { dir, file, store, ids, at: (name: string) => join(dir, name) }
}

/** Copies a file, with what stands beside it under these ends of its name. */
function copy(from: string, to: string, ...ends: readonly string[]): void {
  for (const end of ['', ...ends]) copyFileSync(from + end, to + end)
}

/** What a file and what stands beside it contain. */
function contents(dir: string, name: string): string[] {
  return readdirSync(dir)
    .filter(each => each.startsWith(name))
    .map(each => `${each} ${readFileSync(join(dir, each)).toString('latin1')}`)
}

/** Has both a store and a reader refuse a file, which stays as it is. */
function isRefused(t: Test, dir: string, name: string, message: RegExp): void {
  const before = contents(dir, name)
  for (const open of [sqliteStore, readSqlite]) t.throws(() => open(join(dir, name)), { name: 'StorageError', message })
  t.strictSame(
    contents(dir, name).filter(each => !each.startsWith(`${name}-shm`)),
    before.filter(each => !each.startsWith(`${name}-shm`)),
    'and left as it is'
  )
}

/** The tasks that a file has. */
async function idsIn(file: string): Promise<string[]> {
  const store = sqliteStore(file)
  const ids = await taskIds(store)
  await store.close()
  return ids
}

for (const driver of DRIVERS) {
  await t.test(`a copy of an open store needs its log, and otherwise is whole, with ${driver}`, async t => {
    const { dir, file, store, ids, at } = await live(t, { driver })
    copy(file, at('alone.db'))
    isRefused(
      t,
      dir,
      'alone.db',
      /alone\.db is incomplete without its log .*alone\.db-wal, which is missing or empty.* taskchart db backup/
    )
    copy(file, at('both.db'), '-wal')
    writeFileSync(at('alone.db-wal'), '')
    isRefused(t, dir, 'alone.db', /is missing or empty/)
    t.strictSame(await idsIn(at('both.db')), ids)
    await store.close()
    copy(file, at('closed.db'))
    t.strictSame(await idsIn(at('closed.db')), ids)
    await keepResult({ trouble: 'no log', times: 2 })
  })
}

await t.test('a file is whole again after another program has checkpointed its log', async t => {
  const { file, store, ids, at } = await live(t)
  copy(file, at('left.db'), '-wal')
  edit(at('left.db'), database => t.equal(database.prepare('SELECT count(*) AS count FROM tasks').get()?.count, 2))
  t.notOk(existsSync(at('left.db-wal')))
  t.strictSame(await idsIn(at('left.db')), ids)
  const reader = driverOf(undefined)(file, true)
  reader.exec(`VACUUM INTO '${at('into.db')}'`)
  reader.close()
  t.strictSame(await idsIn(at('into.db')), ids)
  await store.commit(opening('c'))
})

await t.test('a file and a log that do not match are refused', async t => {
  const { dir, file, store, at } = await live(t)
  copy(file, at('torn.db'))
  // Writes the log back, after which it begins anew.
  await store.erase({ tenant: '', principal: 'anna', contextId: 'context of a' })
  await store.commit(opening('c'))
  copyFileSync(`${file}-wal`, at('torn.db-wal'))
  copy(file, at('alone.db'))
  isRefused(t, dir, 'alone.db', /alone\.db is incomplete without its log/)
  isRefused(t, dir, 'torn.db', /torn\.db is incomplete without its own log, and .*torn\.db-wal is another one/)
  t.equal(backupFile(file, at('restored.db')), readFileSync(at('restored.db')).length)
  copyFileSync(`${file}-wal`, at('restored.db-wal'))
  isRefused(
    t,
    dir,
    'restored.db',
    /restored\.db has no log yet, so .*restored\.db-wal is the log of another file.* Move .*restored\.db-wal and .*restored\.db-shm away/
  )
  rmSync(at('restored.db-wal'))
  t.strictSame(await idsIn(at('restored.db')), ['b', 'c'])
  await keepResult({ trouble: 'other log', times: 2 })
})

await t.test('a log whose file is missing or empty is refused and kept', async t => {
  const { dir, file, ids, at } = await live(t)
  copy(file, at('whole.db'), '-wal')
  copyFileSync(`${file}-wal`, at('gone.db-wal'))
  isRefused(
    t,
    dir,
    'gone.db',
    /gone\.db is missing or empty, but its log .*gone\.db-wal is there.* Put the file back beside its log/
  )
  writeFileSync(at('gone.db'), '')
  isRefused(t, dir, 'gone.db', /gone\.db is missing or empty/)
  copyFileSync(at('whole.db'), at('gone.db'))
  t.strictSame(await idsIn(at('gone.db')), ids)
  await keepResult({ trouble: 'no file', times: 2 })
})

await t.test('a store stops at the commit after its file or log was removed or replaced', async t => {
  const cases: [string, (file: string) => void, string[] | RegExp][] = [
    ['', file => rmSync(file), /is missing or empty, but its log/],
    ['', file => renameSync(file, `${file}.moved`), /is missing or empty, but its log/],
    [
      '',
      file => {
        edit(`${file}.new`, () => {})
        renameSync(`${file}.new`, file)
      },
      /is missing or empty, but its log/
    ],
    ['-wal', file => rmSync(`${file}-wal`), ['a', 'b']],
    ['-wal', file => renameSync(`${file}-wal`, `${file}.moved`), ['a', 'b']],
    ['-lock', file => rmSync(`${file}-lock`), ['a', 'b']]
  ]
  for (const [end, part, after] of cases) {
    await t.test(`${end} ${String(part)}`, async t => {
      const { logger } = quiet()
      const stops: StorageError[] = []
      const { file, store } = await live(t, { logger, stopped: error => stops.push(error) })
      part(file)
      const message = `${file}${end} was removed or replaced while the store was open, so nothing more is stored.`
      for (const id of ['c', 'd']) await t.rejects(store.commit(opening(id)), { name: 'StorageError', message })
      t.match(stops, [{ message }])
      await store.close()
      if (after instanceof RegExp) t.throws(() => sqliteStore(file), { name: 'StorageError', message: after })
      else t.strictSame(await idsIn(file), after, 'nothing that was stored before is lost')
      await keepResult({ trouble: 'replaced', times: 1 })
    })
  }
})

await t.test('an engine that lost its file writes nothing more, except a renamed log back', t => {
  for (const end of ['', '-wal']) {
    const file = join(t.testdir(), 'tasks.db')
    const release = prepareFile(file, undefined)
    const engine = new Engine(openForWriting(file, undefined), file, () => {})
    t.strictSame(engine.commitAll([rowsOf(opening('a'))]), [true])
    rmSync(file + end)
    t.match(engine.commitAll([rowsOf(opening('b')), rowsOf(opening('c'))]), [
      { name: 'StorageError' },
      { name: 'StorageError' }
    ])
    t.match(engine.broken, { message: `${file}${end} was removed or replaced` })
    t.throws(() => engine.read(() => {}), { message: /was removed or replaced/ })
    engine.checkpoint()
    engine.close()
    t.equal(existsSync(`${file}-wal`), end === '', 'a log without its file is left')
    release()
  }
  t.end()
})

await t.test('a file with a second hard link is refused by either name', async t => {
  const { dir, file, store, ids, at } = await live(t)
  linkSync(file, at('linked.db'))
  isRefused(t, dir, 'linked.db', /linked\.db has 2 names \(hard links\)/)
  await store.close()
  isRefused(t, dir, 'live.db', /live\.db has 2 names/)
  rmSync(at('linked.db'))
  t.strictSame(await idsIn(file), ids)
})

await t.test('a backup', async t => {
  await t.test('is complete by itself, of an open store and of an unused file', async t => {
    const { dir, file, store, ids, at } = await live(t)
    t.ok(backupFile(file, at('live-backup.db')) > 0)
    await store.commit(opening('c'))
    await store.close()
    backupFile(file, at("closed 'backup'.db"))
    t.strictSame(await idsIn(at('live-backup.db')), ids)
    t.strictSame(await idsIn(at("closed 'backup'.db")), [...ids, 'c'])
    t.strictSame(
      readdirSync(dir).filter(name => name.includes('partial')),
      []
    )
  })

  await t.test('overwrites nothing, and leaves nothing if it fails', async t => {
    const { dir, file, at } = await live(t)
    writeFileSync(at('taken.db'), 'mine')
    writeFileSync(at('old.db-wal'), 'mine')
    const before = readdirSync(dir)
    t.throws(() => backupFile(file, at('taken.db')), {
      name: 'StorageError',
      message: /taken\.db exists, and a backup overwrites nothing/
    })
    t.throws(() => backupFile(file, at('old.db')), { name: 'StorageError', message: /old\.db-wal exists/ })
    t.throws(() => backupFile(at('none.db'), at('copy.db')), {
      name: 'StorageError',
      message: /none\.db does not exist/
    })
    t.throws(() => backupFile(file, at('nowhere/copy.db')), {
      name: 'StorageError',
      message: /its folder cannot be found/
    })
    t.throws(() => backupFile(file, '/proc/copy.db'), {
      name: 'StorageError',
      message: /could not be copied to \/proc\/copy\.db: /
    })
    t.strictSame(readdirSync(dir), before)
  })
})

await t.test('new files are private to their owner, and existing ones keep their rights', async t => {
  const { dir, file, store, at } = await live(t)
  backupFile(file, at('backup.db'))
  const names = readdirSync(dir).toSorted()
  for (const name of ['backup.db', 'live.db', 'live.db-lock', 'live.db-wal', 'live.db-shm']) t.ok(names.includes(name))
  for (const name of names) t.equal(statSync(at(name)).mode & 0o777, 0o600, name)
  await store.close()
  chmodSync(file, 0o640)
  const again = sqliteStore(file)
  await again.commit(opening('c'))
  for (const end of ['', '-wal', '-shm']) t.equal(statSync(file + end).mode & 0o777, 0o640, end)
  await again.close()
})
