import '../../fixtures/stores/needs-sqlite.ts'
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { backupFile, vacuumFile } from '../../../adapters/storage/file/maintenance.ts'
import { rowsOf } from '../../../adapters/rows/commit-rows.ts'
import { driverOf, type Database } from '../../../adapters/storage/driver.ts'
import { Engine } from '../../../adapters/storage/engine.ts'
import { openForWriting, prepareFile } from '../../../adapters/storage/file/open-file.ts'
import { sqliteStore } from '../../../adapters/storage/sqlite.ts'
import type { Commit } from '../../../runtime/store/store.ts'
import { edit, ending, FAST_FOLDER, opening, scope, taskIds } from '../../fixtures/stores/stored-tasks.ts'

const MIB = 1024 * 1024
const ALL = { endedBeforeMs: 1, idleBeforeMs: 1, sendsBeforeMs: 1 }

/** The name of a file that is not there yet. */
function fileFor(t: Test): string {
  const dir = mkdtempSync(join(FAST_FOLDER, 'taskchart-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  return join(dir, 'tasks.db')
}

/** An engine in this thread; `wrap` stands between it and SQLite. */
function engineOn(t: Test, file: string, wrap: (database: Database) => Database = database => database): Engine {
  const release = prepareFile(file, undefined)
  const engine = new Engine(wrap(openForWriting(file, undefined)), file, () => {})
  t.teardown(() => {
    engine.close()
    release()
  })
  return engine
}

/** Commits of tasks, each of which has ended with a result of this many bytes. */
function ended(prefix: string, count: number, bytes: number): Commit[] {
  const text = 'x'.repeat(bytes)
  return Array.from({ length: count }, (_, i) => [opening(`${prefix}${i}`), ending(`${prefix}${i}`, { text })]).flat()
}

const sizeOf = (file: string) => statSync(file).size
const logOf = (file: string) => sizeOf(`${file}-wal`)

/** Writes commits as the store's thread does: tidies after each transaction. */
function writeAll(engine: Engine, commits: readonly Commit[], t: Test): void {
  for (const commit of commits) {
    t.strictSame(engine.commitAll([rowsOf(commit)]), [true])
    engine.tidy()
  }
}

/** Removes everything that has ended, and tidies as the store's thread does. Gives the greatest size of the log. */
function removeAll(engine: Engine, file: string): number {
  let longest = 0
  for (let hasMore = true; hasMore;) {
    hasMore = engine.sweep(ALL, 256) > 0
    longest = Math.max(longest, logOf(file))
    while (engine.tidy()) longest = Math.max(longest, logOf(file))
  }
  return longest
}

await t.test('the log has at most 4 MiB and one transaction, however much is written', t => {
  const file = fileFor(t)
  const engine = engineOn(t, file)
  for (let batch = 0; batch < 3; batch += 1) {
    writeAll(engine, ended(`${batch}-`, 200, 100_000), t)
    t.ok(logOf(file) < 10 * MIB, `${logOf(file)}`)
  }
  t.ok(sizeOf(file) > 40 * MIB)
  t.end()
})

await t.test('the log counts its contents: many small commits do not make it longer', t => {
  const file = fileFor(t)
  const engine = engineOn(t, file)
  writeAll(engine, ended('t', 700, 5), t)
  t.ok(logOf(file) < 5 * MIB, `${logOf(file)}`)
  t.end()
})

await t.test('removal keeps the log within its limit, and returns space to the file system', t => {
  const file = fileFor(t)
  const engine = engineOn(t, file)
  writeAll(engine, [...ended('large', 250, 200_000), opening('live')], t)
  const before = sizeOf(file)
  t.ok(before > 25 * MIB)
  const longest = removeAll(engine, file)
  t.ok(longest < 10 * MIB, `${longest}`)
  t.ok(sizeOf(file) < 2 * MIB, `${sizeOf(file)} of ${before}`)
  t.equal(engine.read(reads => reads.listTasks(scope, { limit: 10 })).total, 1)
  t.end()
})

await t.test('contexts without tasks are removed in batches too', t => {
  const file = fileFor(t)
  const engine = engineOn(t, file)
  const parts = [{ text: 'x'.repeat(MIB) }]
  const said = (contextId: string): Commit => ({
    ...opening('none', { contextId }),
    tasks: [],
    journal: [],
    log: [{ message: { messageId: contextId, role: 'ROLE_USER', contextId, parts }, generation: 0 }]
  })
  engine.commitAll(Array.from({ length: 12 }, (_, i) => rowsOf(said(`c${i}`))))
  t.equal(engine.sweep(ALL, 256), 4)
  t.equal(engine.sweep(ALL, 2), 2)
  removeAll(engine, file)
  t.strictSame(
    engine.read(reads => reads.scopes()),
    []
  )
  t.end()
})

await t.test('a store returns space by itself, also space freed by an earlier process', async t => {
  const file = fileFor(t)
  const first = sqliteStore(file)
  await Promise.all(ended('t', 100, 100_000).map(commit => first.commit(commit)))
  while ((await first.sweep(ALL, 256)) > 0) await setImmediate()
  await first.close()
  const store = sqliteStore(file)
  t.teardown(() => store.close())
  await store.commit(opening('live'))
  for (let turns = 0; sizeOf(file) > 2 * MIB && turns < 10_000; turns += 1) await store.readTask(scope, 'live')
  t.ok(sizeOf(file) < 2 * MIB, `${sizeOf(file)}`)
  t.strictSame(await taskIds(store), ['live'])
})

await t.test('the log grows during a long read without repeated checkpoints, and is truncated after it', t => {
  const file = fileFor(t)
  let checkpoints = 0
  const engine = engineOn(t, file, database => ({
    exec: sql => database.exec(sql),
    close: () => database.close(),
    prepare: sql => {
      if (sql.includes('wal_checkpoint')) checkpoints += 1
      return database.prepare(sql)
    }
  }))
  engine.commitAll(ended('first', 1, 5).map(rowsOf))
  const reader = driverOf(undefined)(file, true)
  reader.exec('BEGIN')
  reader.prepare('SELECT * FROM tasks').all()
  for (let i = 0; i < 40; i += 1) {
    engine.commitAll(ended(`a${i}-`, 10, 100_000).map(rowsOf))
    engine.tidy()
  }
  t.ok(logOf(file) > 38 * MIB)
  t.ok(checkpoints <= 3, `${checkpoints}`)
  reader.exec('COMMIT')
  reader.close()
  for (let i = 0; i < 20; i += 1) {
    engine.commitAll(ended(`b${i}-`, 10, 100_000).map(rowsOf))
    engine.tidy()
  }
  t.ok(logOf(file) < 10 * MIB, `${logOf(file)}`)
  t.end()
})

/** The code of a thread that lists tasks until it is told to end. */
const READER = `
  const { parentPort, workerData: { url, file, scope, end } } = require('node:worker_threads')
  import(url).then(async ({ readSqlite }) => {
    const reader = readSqlite(file)
    parentPort.postMessage('reads')
    while (Atomics.load(end, 0) === 0) await reader.listTasks(scope, { limit: 100 })
    await reader.close()
  })
`

/** Writes beside readers of page after page. Gives the greatest size of the log. */
async function writeBesideReaders(t: Test): Promise<number> {
  const file = fileFor(t)
  const store = sqliteStore(file)
  t.teardown(() => store.close())
  await Promise.all(ended('first', 300, 1000).map(commit => store.commit(commit)))
  const end = new Int32Array(new SharedArrayBuffer(4))
  const url = new URL('../../../adapters/storage/sqlite.js', import.meta.url).href
  const readers = [1, 2].map(() => new Worker(READER, { eval: true, workerData: { url, file, scope, end } }))
  await Promise.all(readers.map(reader => once(reader, 'message')))
  let longest = 0
  for (const commit of ended('', 700, 100_000)) {
    await store.commit(commit)
    longest = Math.max(longest, logOf(file))
  }
  Atomics.store(end, 0, 1)
  await Promise.all(readers.map(reader => once(reader, 'exit')))
  return longest
}

await t.test('readers of page after page do not make the log longer', async t => {
  // A checkpoint waits for readers only for a time, within which a busy machine may not let them end.
  let longest = Infinity
  for (let attempt = 0; attempt < 3 && longest >= 10 * MIB; attempt += 1) longest = await writeBesideReaders(t)
  t.ok(longest < 10 * MIB, `${longest}`)
})

await t.test('free pages stay for later if the disk is full', t => {
  const file = fileFor(t)
  let isFull = false
  const engine = engineOn(t, file, database => ({
    prepare: sql => database.prepare(sql),
    close: () => database.close(),
    exec: sql => {
      if (isFull && sql.includes('incremental_vacuum'))
        throw Object.assign(new TypeError('database or disk is full'), { code: 'SQLITE_FULL' })
      return database.exec(sql)
    }
  }))
  engine.commitAll(ended('t', 50, 100_000).map(rowsOf))
  isFull = true
  engine.sweep(ALL, 256)
  t.equal(engine.tidy(), false)
  t.equal(engine.broken, undefined)
  isFull = false
  removeAll(engine, file)
  t.ok(sizeOf(file) < 2 * MIB, `${sizeOf(file)}`)
  t.end()
})

await t.test('an older file returns space by itself only after a vacuum', async t => {
  const file = fileFor(t)
  prepareFile(file, undefined)()
  edit(file, database => database.exec('PRAGMA auto_vacuum = NONE; VACUUM'))
  const fill = async () => {
    const store = sqliteStore(file)
    await Promise.all([...ended('t', 100, 100_000), opening('live')].map(commit => store.commit(commit)))
    while ((await store.sweep(ALL, 256)) > 0) await setImmediate()
    return store
  }
  const store = await fill()
  t.throws(() => vacuumFile(file), { name: 'StorageError', message: /is in use by process/ })
  await store.close()
  t.ok(sizeOf(file) > 9 * MIB)
  t.ok(backupFile(file, `${file}.copy`) < MIB)
  edit(`${file}.copy`, database =>
    t.equal(database.prepare('PRAGMA auto_vacuum').get()?.auto_vacuum, 2, 'as a copy does')
  )
  const { before, after } = vacuumFile(file)
  t.ok(before > 9 * MIB && after < MIB, `${before} ${after}`)
  t.equal(sizeOf(file), after)
  const again = sqliteStore(file)
  t.teardown(() => again.close())
  t.strictSame(await taskIds(again), ['live'])
  edit(file, database => t.equal(database.prepare('PRAGMA auto_vacuum').get()?.auto_vacuum, 2))
  t.throws(() => vacuumFile(`${file}.none`), { name: 'StorageError', message: /does not exist/ })
  t.notOk(existsSync(`${file}.none`))
})
