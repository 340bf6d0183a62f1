import '../../fixtures/stores/needs-postgres.ts'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { postgresCopySource, postgresCopyTarget } from '../../../adapters/postgres/copy.ts'
import { postgresStore, readPostgres } from '../../../adapters/postgres/postgres.ts'
import { COPIED_TABLES, copyRows, type CopiedTable } from '../../../adapters/rows/copied-rows.ts'
import { sqliteCopySource, sqliteCopyTarget } from '../../../adapters/storage/copy.ts'
import { sqliteStore } from '../../../adapters/storage/sqlite.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import { createRuntime, defineAgent, inputRequired, text, textOf } from '../../../runtime/index.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { HOSTILE } from '../../fixtures/stores/hostile-keys.ts'
import { onDatabase, PostgresServer } from '../../fixtures/stores/postgres.ts'
import { runCommand } from '../../fixtures/cli/run-command.ts'
import { collect, generationOf } from '../../fixtures/runtime/runtime-helpers.ts'
import { IS_DEEP } from '../../fixtures/sample.ts'
import { storeSuite } from '../../fixtures/stores/store-suite.ts'
import { edit, ending, opening, quiet, scope } from '../../fixtures/stores/stored-tasks.ts'
import { counted } from '../../fixtures/stores/transition-suite.ts'

const server = await PostgresServer.start()
t.teardown(() => server.stop())
let databases = 0

/** The URL of a new database. */
async function newDatabase(): Promise<string> {
  const name = `d${(databases += 1)}`
  await onDatabase(server.url(), `CREATE DATABASE ${name}`)
  return server.url().replace(/postgres$/, name)
}

const openPostgres = async (url: string) => postgresStore(url, { logger: quiet().logger, readers: 1 })

/** Rows of every kind, in many scopes and contexts, with any names and long keys. */
async function fill(store: Store): Promise<void> {
  const long = 'k'.repeat(1000)
  for (const [i, name] of HOSTILE.entries()) {
    const contextId = `context of ${name}`
    const key = { tenant: i % 2 === 0 ? '' : name, principal: name, contextId }
    const send = { key: i === 0 ? long : name, fingerprint: 'f', atMs: 1, expiresAtMs: 10.5, taskId: name }
    const hook = (id: string) => ({
      taskId: name,
      id,
      webhook: { url: 'https://hooks.example/', token: 't' },
      version: '1.0'
    })
    const first = opening(name, { contextId, atMs: 5 })
    const tasks = first.tasks.map(row => ({ ...row, snapshot: JSON.stringify({ name }), wakeAtMs: 1.5 }))
    await store.commit({
      ...first,
      tasks,
      key,
      sends: [send],
      journal: [...first.journal, { taskId: name, key: i === 0 ? long : name, value: { i } }],
      webhooks: [
        { ...hook(name), told: 0 },
        { ...hook(long), told: 0 }
      ]
    })
    await store.noteWebhooks([{ scope: key, taskId: name, id: long, progress: { told: 1, tries: 2, end: 'given up' } }])
    await store.countTransitions?.([counted('chart', name, i, { previous: name, timed: 1, ms: 2 })], i)
    if (i % 3 === 0) await store.commit({ ...ending(name, { contextId, text: 'x'.repeat(i * 100_000) }), key })
  }
  for (let i = 0; i < 1100; i += 550)
    await Promise.all(
      Array.from({ length: 550 }, (_, n) => store.commit(opening(`t${i + n}`, { contextId: `c${i + n}` })))
    )
}

const KEYS: Readonly<Record<CopiedTable, string>> = {
  contexts: 'context',
  tasks: 'task',
  snapshots: 'task',
  events: 'task, generation',
  messages: 'context, number',
  journal: 'task, key',
  sends: 'context_id, key',
  webhooks: 'place',
  transitions: 'chart, previous, taken, writer'
}

/** All rows of a database, with checksums. */
async function rowsOf(url: string): Promise<string[][]> {
  const tables = [
    ...COPIED_TABLES.map(table => `SELECT * FROM ${table} ORDER BY ${KEYS[table]}`),
    'SELECT tenant, principal, state, sum(count) FROM counters GROUP BY 1, 2, 3 HAVING sum(count) <> 0 ORDER BY 1, 2, 3'
  ]
  return Promise.all(
    tables.map(async sql =>
      (await onDatabase(url, `SET search_path = taskchart; ${sql}`)).map(row => JSON.stringify(row))
    )
  )
}

/** All rows of a file, with checksums. */
function rowsIn(file: string): string[][] {
  const tables: string[][] = []
  edit(file, database =>
    tables.push(
      ...['scopes', ...COPIED_TABLES].map(table =>
        database
          .prepare(`SELECT * FROM ${table}`)
          .all()
          .map(row => JSON.stringify(row))
          .toSorted()
      )
    )
  )
  return tables
}

const copied = async (t: Test, from: string, to: string, cwd: string) =>
  t.match(await runCommand(['db', 'copy', from, to], { cwd }), { code: 0, stderr: / tasks of / })

await t.test(
  'a copy from PostgreSQL to SQLite and back has the same rows, and so has one from SQLite and back',
  async t => {
    const cwd = t.testdir()
    const [first, second] = [await newDatabase(), await newDatabase()]
    const store = await openPostgres(first)
    await fill(store)
    await store.close()
    await copied(t, first, 'one.db', cwd)
    await copied(t, 'one.db', second, cwd)
    t.strictSame(await rowsOf(second), await rowsOf(first))
    await copied(t, second, 'two.db', cwd)
    t.strictSame(rowsIn(join(cwd, 'two.db')), rowsIn(join(cwd, 'one.db')))
    const again = await openPostgres(second)
    t.teardown(() => again.close())
    t.equal(await again.commit(ending('t7', { contextId: 'c7' })), true, 'each context has its number')
    t.equal(await again.commit(opening('new')), true)
    t.equal(
      await again.commit({
        ...opening('t8b', { contextId: 'c8', expected: 1 }),
        webhooks: [{ taskId: 't8b', id: 'w', webhook: { url: 'https://hooks.example/' }, version: '1.0', told: 0 }]
      }),
      true
    )
  }
)

await t.test(
  'a task that waits goes on after the copy, and its stream after the last generation, without a gap or a repetition',
  async t => {
    const cwd = t.testdir()
    const agent = defineAgent({
      card: { name: 'Asks' },
      work: async ({ ask }) => ({ artifact: text(`so ${textOf(await ask(inputRequired('Which?')))}`) })
    })
    const message = (words: string, taskId?: string) => ({
      message: {
        messageId: words,
        role: 'ROLE_USER' as const,
        parts: [text(words)],
        ...(taskId !== undefined && { taskId })
      }
    })
    const database = await newDatabase()
    const places = ['agent.db', database, 'back.db']
    for (const [i, place] of places.entries()) {
      const store = place.includes('://') ? await openPostgres(place) : sqliteStore(join(cwd, place))
      const runtime = createRuntime({ agent, store })
      const asked = await runtime.sendMessage(message(`go ${i}`))
      const id = 'task' in asked ? asked.task.id : ''
      await runtime.close()
      const to = places[i + 1]
      if (to === undefined) return
      await copied(t, place, to, cwd)
      const later = createRuntime({
        agent,
        store: to.includes('://') ? await openPostgres(to) : sqliteStore(join(cwd, to))
      })
      const told = collect(
        later.subscribeToTask({ id }, { extensions: [RELIABILITY_EXTENSION], conditions: { afterGeneration: 2 } })
      )
      t.match(await later.sendMessage(message(`this ${i}`, id)), {
        task: { id, status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ parts: [{ text: `so this ${i}` }] }] }
      })
      t.strictSame((await told).map(generationOf), [3, 4, 6, 7, 8], 'the message has 5')
      await later.close()
    }
  }
)

await t.test('damaged rows stay damaged, and everything else is intact', async t => {
  const cwd = t.testdir()
  const file = join(cwd, 'one.db')
  const store = sqliteStore(file)
  for (const taskId of ['a', 'b', 'c', 'd', 'e'])
    await store.commit({
      ...opening(taskId),
      webhooks: [{ taskId, id: 'w', webhook: { url: 'https://hooks.example/' }, version: '1.0', told: 0 }]
    })
  await store.close()
  edit(file, database =>
    database.exec(`
    UPDATE events SET body = '{}' WHERE task = 1; UPDATE journal SET body = '0' WHERE task = 2; UPDATE contexts SET commits = 9 WHERE context = 3; UPDATE webhooks SET body = 'no' WHERE task = 4;
    DELETE FROM tasks WHERE task = 5`)
  )
  const damages = async (place: string) =>
    (await runCommand(['db', 'check', place], { cwd })).stderr.split('\n').toSorted().slice(0, -2)
  const expected = await damages('one.db')
  t.equal(expected.length, 4)
  const database = await newDatabase()
  t.match(await runCommand(['db', 'copy', 'one.db', database], { cwd }), {
    code: 0,
    stderr: /4 tasks of one\.db\.\n4 damaged rows were copied as such: taskchart db check names them\.\n$/
  })
  t.strictSame(await damages(database), expected)
  await copied(t, database, 'two.db', cwd)
  t.strictSame(await damages('two.db'), expected)
})

await t.test('a copy that is interrupted leaves a database that servers refuse, and can begin again', async t => {
  const cwd = t.testdir()
  const file = join(cwd, 'one.db')
  const store = sqliteStore(file)
  for (const taskId of ['a', 'b']) await store.commit(opening(taskId))
  await store.close()
  const url = await newDatabase()
  const source = sqliteCopySource(file)
  const target = await postgresCopyTarget(url, 'one.db', quiet().logger)
  const stopped = new AbortController()
  const add: typeof target.add = async (table, rows) => {
    await target.add(table, rows)
    if (table === 'events') stopped.abort(new RangeError('interrupted'))
  }
  await t.rejects(
    copyRows(source, { ...target, add }, () => {}, stopped.signal),
    { message: 'interrupted' }
  )
  await target.close()
  await source.close()
  for (const open of [postgresStore, readPostgres])
    await t.rejects(async () => open(url, { logger: quiet().logger }), {
      name: 'StorageError',
      message: 'has an unfinished copy of one.db. Run taskchart db copy again.'
    })
  await copied(t, 'one.db', url, cwd)
  const read = await readPostgres(url)
  t.equal((await read.listTasks(scope, { limit: 10 })).total, 2)
  await read.close()

  const back = sqliteCopyTarget(join(cwd, 'two.db'))
  const from = await postgresCopySource(url, quiet().logger)
  await t.rejects(
    copyRows(from, back, () => {}, AbortSignal.abort(new RangeError('interrupted'))),
    { message: 'interrupted' }
  )
  await back.close()
  await from.close()
  t.notOk(existsSync(join(cwd, 'two.db')))
  await copied(t, url, 'two.db', cwd)
})

await t.test('a target with data and a source in use are refused, and a source that is not there', async t => {
  const cwd = t.testdir()
  const [full, empty] = [await newDatabase(), await newDatabase()]
  const store = await openPostgres(full)
  await store.commit(opening('t'))
  t.match(await runCommand(['db', 'copy', full, 'one.db'], { cwd }), { code: 1, stderr: /is in use by process/ })
  await store.close()
  await copied(t, full, 'one.db', cwd)
  t.match(await runCommand(['db', 'copy', 'one.db', full], { cwd }), {
    code: 1,
    stderr: /has data, and a copy overwrites nothing/
  })
  t.match(await runCommand(['db', 'copy', full, 'one.db'], { cwd }), {
    code: 1,
    stderr: /one\.db exists, and a copy overwrites nothing/
  })
  t.match(await runCommand(['db', 'copy', empty, 'two.db'], { cwd }), { code: 1, stderr: /has no tables of taskchart/ })
  t.match(await runCommand(['db', 'copy', 'none.db', empty], { cwd }), { code: 1, stderr: /none\.db does not exist/ })
  const here = sqliteStore(join(cwd, 'one.db'))
  t.match(await runCommand(['db', 'copy', 'one.db', empty], { cwd }), {
    code: 1,
    stderr: /one\.db is in use by process/
  })
  await here.close()
})

if (IS_DEEP) {
  await t.test('the data of the suite of all engines', async t => {
    const cwd = t.testdir()
    const files: string[] = []
    await storeSuite(t, 'copied', () => {
      files.push(`${files.length}.db`)
      return sqliteStore(join(cwd, files.at(-1) as string), { logger: quiet().logger })
    })
    for (const file of files) {
      const url = await newDatabase()
      await copied(t, file, url, cwd)
      await copied(t, url, `back-${file}`, cwd)
      // Scopes are numbered anew, and a scope without data is not copied.
      const counts = (name: string) =>
        rowsIn(join(cwd, name))
          .slice(1)
          .map(rows => rows.length)
      t.strictSame(counts(`back-${file}`), counts(file), file)
    }
  })
}
