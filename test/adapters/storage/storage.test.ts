import '../../fixtures/stores/needs-sqlite.ts'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync
} from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { driverOf, sqliteCode } from '../../../adapters/storage/driver.ts'
import { LeastCostQueue } from '../../../adapters/rows/least-cost-queue.ts'
import { APPLICATION_ID } from '../../../adapters/storage/file/file-header.ts'
import { migrateSqlite, SQLITE_MIGRATIONS, usingFile } from '../../../adapters/storage/file/open-file.ts'
import { readSqlite, sqliteStore } from '../../../adapters/storage/sqlite.ts'
import { StorageError, originalText, storedText } from '../../../adapters/rows/damage.ts'
import { createRuntime, defineAgent, inputRequired, text, textOf } from '../../../runtime/index.ts'
import { LruCache } from '../../../runtime/primitives/collections.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { emptiedStore } from '../../fixtures/stores/emptied-store.ts'
import { HOSTILE } from '../../fixtures/stores/hostile-keys.ts'
import { tasksIn } from '../../fixtures/runtime/runtime-helpers.ts'
import { openTasksSuite } from '../../fixtures/stores/open-tasks-suite.ts'
import { patchSuite } from '../../fixtures/stores/patch-suite.ts'
import { findsLostRows } from '../../fixtures/stores/numbered-suite.ts'
import { storeSuite } from '../../fixtures/stores/store-suite.ts'
import { counted, transitionSuite } from '../../fixtures/stores/transition-suite.ts'
import {
  contextKey,
  DRIVERS,
  edit,
  editBesideIndex,
  ending,
  FAST_FOLDER,
  opening,
  quiet,
  scope,
  taskIds
} from '../../fixtures/stores/stored-tasks.ts'
import { takesOver, unnumberedMessages } from '../../fixtures/stores/unnumbered-messages.ts'
import { anyone } from '../../fixtures/runtime/lives.ts'

await t.test('a file that cannot be opened any more is an error that names it', t => {
  const fail = () => {
    throw Object.assign(new Error('unable to open database file'), { code: 'SQLITE_CANTOPEN' })
  }
  t.throws(() => usingFile('gone.db', fail, () => {}), {
    name: 'StorageError',
    message: 'gone.db cannot be used: unable to open database file (SQLITE_CANTOPEN).'
  })
  t.end()
})

const fileIn = (t: Test) => join(t.testdir(), 'tasks.db')

/** Opens a store that is closed when the test ends. */
function opened(t: Test, file: string, options: Parameters<typeof sqliteStore>[1] = {}) {
  const store = sqliteStore(file, options)
  t.teardown(() => store.close())
  return store
}

/** A file with a task that is over and one that goes on, closed. */
async function written(t: Test): Promise<string> {
  const file = fileIn(t)
  const store = sqliteStore(file)
  await store.commit(opening('over'))
  await store.commit(ending('over'))
  await store.commit(opening('live'))
  await store.close()
  return file
}

/** A store on a file from which everything is erased that is in it. */
async function emptied(store: Store, file: string): Promise<Store> {
  const reader = readSqlite(file)
  try {
    return await emptiedStore(store, () => reader.scopes())
  } finally {
    await reader.close()
  }
}

/** What opening a store or a reader throws. */
function refusal(open: () => unknown): Error {
  try {
    open()
  } catch (error) {
    return error as Error
  }
  throw new TypeError('was not refused')
}

for (const driver of DRIVERS) {
  await t.test(`every engine passes the suite, with ${driver}`, async t => {
    const dir = mkdtempSync(join(FAST_FOLDER, 'taskchart-'))
    t.teardown(() => rmSync(dir, { recursive: true }))
    const file = join(dir, 'tasks.db')
    const store = opened(t, file, { driver })
    await storeSuite(t, driver, () => emptied(store, file))
    await patchSuite(t, () => emptied(store, file))
  })
}

await t.test('a reader of a file lists the open tasks of all callers, and reads their definitions', async t => {
  const file = fileIn(t)
  await openTasksSuite(t, sqliteStore(file), async () => readSqlite(file))
})

await t.test('a driver that this Node lacks is refused, with what to do', async t => {
  const missing = (['node:sqlite', 'better-sqlite3'] as const).filter(driver => !DRIVERS.includes(driver))
  for (const driver of missing)
    t.throws(() => sqliteStore(fileIn(t), { driver }), {
      name: 'TypeError',
      message: /the driver|npm install better-sqlite3@1[23]|does not work on Node/
    })
  t.ok(DRIVERS.length > 0)
  t.equal(sqliteCode(new TypeError('no')), undefined)
})

await t.test('an error of SQLite has its name by number, by code and, as in Deno, by text', async t => {
  const named = (members: object) => sqliteCode(Object.assign(new Error('no'), members))
  t.equal(named({ code: 'SQLITE_BUSY' }), 'BUSY')
  t.equal(named({ code: 'ERR_SQLITE_ERROR', message: 'database is locked' }), 'BUSY')
  t.equal(named({ code: 'ERR_SQLITE_ERROR', message: 'unable to open database file: /nowhere/tasks.db' }), 'CANTOPEN')
  t.equal(named({ code: 'ERR_SQLITE_ERROR', message: 'no such table: tasks' }), undefined)
})

await t.test('key columns store every text, in the order of JavaScript', async t => {
  const texts = ['', ...HOSTILE, '\uD800', '\uDC00\uD800', 'a\u0000b', '\\u0000', '\u007F', '\uFFFF', 'plain text: {[~']
  for (const text of texts) t.equal(originalText(storedText(text)), text, JSON.stringify(text))
  t.equal(new Set(texts.map(storedText)).size, new Set(texts).size)
  t.equal(storedText('plain ~'), 'plain ~')
  for (const text of texts) t.match(storedText(text), /^[ -~]*$/)
})

await t.test('commits are there after a restart, with every driver', async t => {
  const file = await written(t)
  for (const driver of DRIVERS) {
    const store = sqliteStore(file, { driver })
    t.strictSame(await taskIds(store), ['live', 'over'])
    t.match(await store.readTask(scope, 'over'), {
      generation: 3,
      task: {
        status: { state: 'TASK_STATE_COMPLETED' },
        artifacts: [{ parts: [{ text: 'result of over' }] }],
        history: [{ messageId: 'm-over' }]
      }
    })
    t.match((await store.loadContext(contextKey('context of live')))?.tasks, opening('live').tasks)
    t.strictSame(await store.readWakes(10, { atMs: 0, taskId: '' }), [
      { key: contextKey('context of live'), taskId: 'live', atMs: 0 }
    ])
    await store.close()
  }
})

await t.test('commits and changes of many turns of the event loop get their own outcomes, in order', async t => {
  const store = opened(t, fileIn(t))
  const outcomes: Promise<unknown>[] = []
  for (let i = 0; i < 300; i += 1) {
    outcomes.push(store.commit(opening(`t${i}`, i % 7 === 0 ? { expected: 1 } : {})))
    if (i % 100 === 50) outcomes.push(store.erase(contextKey(`context of t${i}`)))
    if (i % 5 === 0) await new Promise(resolve => setImmediate(resolve))
  }
  const wanted = Array.from({ length: 300 }, (_, i) => (i % 100 === 50 ? [i % 7 !== 0, i % 7 !== 0] : [i % 7 !== 0]))
  t.strictSame(await Promise.all(outcomes), wanted.flat())
  t.equal((await taskIds(store)).length, 300 - 43 - 3)
})

await t.test('a waiting task continues after a restart', async t => {
  const file = fileIn(t)
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
  const first = createRuntime({ agent, store: sqliteStore(file) })
  const asked = await first.sendMessage(message('go'))
  await first.close()
  const taskId = 'task' in asked ? asked.task.id : ''
  const second = createRuntime({ agent, store: sqliteStore(file) })
  t.teardown(() => second.close())
  t.match(await second.sendMessage(message('this', taskId)), {
    task: { id: taskId, status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ parts: [{ text: 'so this' }] }] }
  })
})

await t.test('close completes earlier calls, refuses later ones and ends the thread', async t => {
  const file = fileIn(t)
  const store = sqliteStore(file)
  const commits = [store.commit(opening('a')), store.commit(opening('b'))]
  const read = store.readTask(scope, 'a')
  const erased = store.erase(contextKey('context of a'))
  const late = store.commit(opening('c'))
  await store.close()
  t.strictSame(await Promise.all([...commits, erased, late]), [true, true, true, true])
  t.equal(await read, undefined, 'a read sees what was stored when it was requested')
  await t.rejects(store.commit(opening('d')), { message: 'The store is closed.' })
  await t.rejects(store.readTask(scope, 'a'), { message: 'The store is closed.' })
  t.strictSame(await taskIds(opened(t, file)), ['b', 'c'])
})

await t.test('more commits than fit in a batch are all written, in order', async t => {
  const store = opened(t, fileIn(t))
  const commits = Array.from({ length: 2000 }, (_, i) => opening(`t${i}`, { contextId: 'c', expected: i }))
  t.ok((await Promise.all(commits.map(commit => store.commit(commit)))).every(Boolean))
  t.equal((await store.loadContext(contextKey('c')))?.commit, 2000)
})

await t.test('a queue serves the user that has cost the least since it arrived', t => {
  const queue = new LeastCostQueue<string>()
  for (const item of ['a1', 'a2', 'a3']) queue.add('a', item)
  const taken: (string | undefined)[] = []
  const take = (cost: number) => {
    const user = queue.next()
    taken.push(user === undefined ? user : queue.take(user))
    if (user !== undefined) queue.charge(user, cost)
  }
  take(10)
  queue.add('b', 'b1')
  queue.add('b', 'b2')
  take(3)
  take(3)
  queue.add('b', 'b3')
  for (let i = 0; i < 4; i += 1) take(5)
  t.strictSame(taken, ['a1', 'b1', 'b2', 'b3', 'a2', 'a3', undefined])
  t.equal(queue.size, 0)
  t.end()
})

await t.test('an arriving user is at most a bounded cost behind the others', t => {
  const queue = new LeastCostQueue<string>(5)
  queue.add('a', 'a1')
  queue.add('b', 'b1')
  const taken = [queue.take('a')]
  queue.charge('a', 1000)
  queue.add('a', 'a2')
  for (const item of ['b2', 'b3', 'b4']) queue.add('b', item)
  for (let i = 0; i < 4; i += 1) {
    const user = queue.next() ?? ''
    taken.push(queue.take(user))
    queue.charge(user, 3)
  }
  t.strictSame(taken, ['a1', 'b1', 'b2', 'a2', 'b3'])
  t.end()
})

await t.test('a user that was passed over for a while does not regain all that time', t => {
  const queue = new LeastCostQueue<string>()
  for (const item of ['held 1', 'held 2', 'held 3']) queue.add('held', item)
  for (const item of ['1', '2', '3', '4']) queue.add('free', item)
  const isFree = (user: string) => user === 'free'
  const taken: (string | undefined)[] = []
  const take = (mayHaveTurn?: (user: string) => boolean) => {
    const user = queue.next(mayHaveTurn) ?? ''
    taken.push(queue.take(user))
    queue.charge(user, 10)
  }
  t.equal(
    queue.next(user => user === 'nobody'),
    undefined
  )
  take(isFree)
  take(isFree)
  for (let i = 0; i < 4; i += 1) take()
  t.strictSame(taken, ['1', '2', 'held 1', 'held 2', '3', 'held 3'])
  t.end()
})

await t.test('the remembered size of an erased task does not count for a later task with its id', async t => {
  const store = opened(t, fileIn(t))
  const sizes = () => store.measureTasks({ ...scope, taskIds: ['again'] })
  await store.commit(opening('again', { text: 'a'.repeat(1000) }))
  const before = await sizes()
  await store.erase(scope)
  await store.commit(opening('again', { text: 'a'.repeat(3000) }))
  t.equal(Number((await sizes())[0]?.bytes) - Number(before[0]?.bytes), 2000)
})

await t.test("a principal's reads and commits do not wait for all of another’s", async t => {
  const store = opened(t, fileIn(t))
  const text = 'a'.repeat(600_000)
  const of = (principal: string, taskId: string) => {
    const commit = opening(taskId, { text })
    return { ...commit, key: { ...commit.key, principal } }
  }
  const order: string[] = []
  const note =
    (name: string) =>
    <T>(done: T): T => {
      order.push(name)
      return done
    }
  const many = Array.from({ length: 20 }, (_, i) => store.commit(of('greedy', `g${i}`)).then(note('greedy')))
  t.ok((await Promise.all([...many, store.commit(of('modest', 'm')).then(note('modest'))])).every(Boolean))
  t.ok(order.indexOf('modest') < 10, `a commit: ${order.join(' ')}`)

  order.length = 0
  const reads = Array.from({ length: 20 }, (_, i) =>
    store.readTask({ tenant: '', principal: 'greedy' }, `g${i}`).then(note('greedy'))
  )
  const found = await Promise.all([
    ...reads,
    store.readTask({ tenant: '', principal: 'modest' }, 'm').then(note('modest'))
  ])
  t.ok(
    found.every(stored => stored?.task.history?.[0]?.parts[0]),
    'all are read'
  )
  t.ok(order.indexOf('modest') < 10, `a read: ${order.join(' ')}`)
})

await t.test('a file has one holder', async t => {
  const file = await written(t)
  const store = opened(t, file)
  await taskIds(store)

  await t.test('a second store in the process is refused by any name and driver', async t => {
    const link = join(t.testdir(), 'link.db')
    symlinkSync(file, link)
    for (const name of [file, link]) {
      for (const driver of [undefined, ...DRIVERS]) {
        const error = refusal(() => sqliteStore(name, driver && { driver }))
        t.type(error, StorageError)
        t.match(error.message, `${file} is in use by process ${process.pid} on ${hostname()} since 2`)
      }
    }
    t.equal(await store.commit(opening('after')), true, 'the first is not disturbed')
  })

  await t.test('one in another process is refused, and accepted once the holder is killed', async t => {
    const other = join(t.testdir(), 'other.db')
    const holder = spawn(
      process.execPath,
      [fileURLToPath(new URL('../../fixtures/stores/store-holder.js', import.meta.url)), other],
      { stdio: ['ignore', 'pipe', 'inherit'] }
    )
    t.teardown(() => holder.kill('SIGKILL'))
    await once(holder.stdout, 'data')
    for (const driver of DRIVERS)
      t.match(refusal(() => sqliteStore(other, { driver })).message, `in use by process ${holder.pid} on ${hostname()}`)
    const ended = once(holder, 'exit')
    holder.kill('SIGKILL')
    await ended
    t.strictSame(await taskIds(opened(t, other)), ['t'])
  })

  await t.test('a reader beside it sees stored commits, and the scopes', async t => {
    const reader = readSqlite(file)
    t.teardown(() => reader.close())
    t.strictSame(await taskIds(reader), ['after', 'live', 'over'])
    await store.commit(opening('later'))
    t.ok(await reader.readTask(scope, 'later'))
    t.equal((await reader.readEvents(scope, 'over', 0, 10)).length, 3)
    t.strictSame(await reader.scopes(), [scope])
    t.strictSame(await reader.readJournal(scope, 'live'), [{ taskId: 'live', key: 'k', value: 'kept for live' }])
    t.equal((await reader.readMessages(contextKey('context of live'), 10)).length, 1)
    t.equal((await tasksIn(reader, contextKey('context of live'))).length, 1)
    t.ok(await reader.loadContext(contextKey('context of live')))
    t.equal((await reader.readWakes(10, { atMs: 0, taskId: '' })).length, 3)
    t.equal(await reader.readSend(scope, 'none'), undefined)
    await reader.close()
    await reader.close()
    await t.rejects(reader.scopes(), { message: 'The store is closed.' })
  })

  await store.close()
  t.strictSame(await taskIds(opened(t, file)), ['after', 'later', 'live', 'over'], 'closing releases it')
  await store.close()
  t.match(
    refusal(() => sqliteStore(file)).message,
    `in use by process ${process.pid}`,
    'but not what another holder has locked since'
  )
})

await t.test('unusable files are refused at once by name, and left unchanged', async t => {
  const dir = t.testdir({ 'notes.txt': 'not a database, only a text that is long enough to have a header', folder: {} })
  const foreign = join(dir, 'foreign.db')
  edit(foreign, database => database.exec('CREATE TABLE mine (x); PRAGMA user_version = 7'))
  const cases: [string, RegExp][] = [
    [join(dir, 'notes.txt'), /notes\.txt is not a SQLite file/],
    [foreign, /foreign\.db is a SQLite file of another program/],
    [join(dir, 'folder'), /folder is not a file/],
    [join(dir, 'nowhere', 'tasks.db'), /its folder cannot be found/]
  ]
  for (const [file, message] of cases) {
    const before = existsSync(file) && statSync(file).isFile() ? readFileSync(file) : undefined
    for (const open of [sqliteStore, readSqlite])
      t.match(
        refusal(() => open(file)),
        { name: 'StorageError', message }
      )
    if (before) t.ok(readFileSync(file).equals(before))
    t.notOk(existsSync(`${file}-lock`), 'no file is created beside it')
  }
  t.match(
    refusal(() => readSqlite(join(dir, 'none.db'))),
    { message: /none\.db does not exist/ }
  )
  edit(join(dir, 'held.db-lock'), lock => {
    lock.exec('BEGIN EXCLUSIVE')
    t.match(
      refusal(() => sqliteStore(join(dir, 'held.db'))),
      { message: /held\.db is in use by another process/ }
    )
  })
  symlinkSync(join(dir, 'nowhere', 'tasks.db'), join(dir, 'dangling.db'))
  t.match(
    refusal(() => sqliteStore(join(dir, 'dangling.db'))),
    {
      name: 'StorageError',
      message:
        /dangling\.db is a link to .*nowhere.tasks\.db, which does not exist\. Remove the link, or give the name of the file itself\.$/
    }
  )
  mkdirSync(join(dir, 'locked.db-lock'))
  t.match(
    refusal(() => sqliteStore(join(dir, 'locked.db'))),
    { message: /locked\.db cannot be used: its lock .*locked\.db-lock cannot be taken/ }
  )
  writeFileSync(
    join(dir, 'bad-lock.db-lock'),
    'no database, but as long as one would have to be for that to be found out: '.repeat(20)
  )
  t.match(
    refusal(() => sqliteStore(join(dir, 'bad-lock.db'))),
    { message: /its lock .* cannot be taken/ }
  )
  writeFileSync(join(dir, 'empty.db'), '')
  t.equal(await opened(t, join(dir, 'empty.db')).commit(opening('t')), true, 'an empty file counts as missing')
})

await t.test('the schema has a version', async t => {
  const versionOf = (file: string) => {
    const database = driverOf(undefined)(file, true)
    const [version, id] = ['user_version', 'application_id'].map(
      name => database.prepare(`PRAGMA ${name}`).get()?.[name]
    )
    database.close()
    return { version, id }
  }

  await t.test('an unknown newer one is refused, with the name of the file and both versions', async t => {
    const file = await written(t)
    t.strictSame(versionOf(file), { version: SQLITE_MIGRATIONS.length, id: APPLICATION_ID })
    edit(file, database => database.exec('PRAGMA user_version = 99'))
    for (const open of [sqliteStore, readSqlite]) {
      t.match(
        refusal(() => open(file)),
        {
          name: 'StorageError',
          message: `${file} has the schema version 99, and this taskchart knows versions up to ${SQLITE_MIGRATIONS.length}`
        }
      )
    }
    t.equal(versionOf(file).version, 99)
  })

  await t.test('an older one is migrated step by step, each completely or not at all', async t => {
    const file = await written(t)
    const steps = [...SQLITE_MIGRATIONS, 'ALTER TABLE meta ADD COLUMN note TEXT', "UPDATE meta SET note = 'new'"]
    edit(file, database => {
      t.throws(() => migrateSqlite(database, file, [...steps, 'UPDATE meta SET note = 1; UPDATE nowhere SET x = 1']), {
        message: /no such table: nowhere/
      })
      t.equal(database.prepare('SELECT note FROM meta').get()?.note, 'new')
      migrateSqlite(database, file, steps)
    })
    t.equal(versionOf(file).version, steps.length)
  })

  await t.test('a full disk is named if a file cannot be created', t => {
    edit(fileIn(t), database => {
      database.exec('PRAGMA max_page_count = 3')
      t.throws(() => migrateSqlite(database, 'tasks.db'), { message: 'database or disk is full' })
    })
    t.end()
  })

  await t.test('a file of version 1 is readable, and a store migrates it without loss', async t => {
    const file = await written(t)
    edit(file, database => {
      for (const name of ['events', 'messages', 'sends']) {
        const [create = ''] = new RegExp(`CREATE TABLE ${name} \\([^;]*;`).exec(SQLITE_MIGRATIONS[0] ?? '') ?? []
        database.exec(
          `ALTER TABLE ${name} RENAME TO newer; ${create} INSERT INTO ${name} SELECT ${name === 'messages' ? 'context, number, task, body, sum' : '*'} FROM newer; DROP TABLE newer`
        )
      }
      database.exec('DROP TABLE webhooks; DROP TABLE transitions; PRAGMA user_version = 1')
    })
    const reader = readSqlite(file)
    t.strictSame(await reader.readTransitions('a'), [])
    t.strictSame(await reader.readWebhooks(scope, 'over'), [])
    t.strictSame(await reader.readOpenWebhooks(10, 0), [])
    const before = await reader.readTask(scope, 'over')
    t.ok(before)
    await reader.close()
    t.equal(versionOf(file).version, 1)
    const store = opened(t, file)
    await store.countTransitions?.([counted('a', 'go', 1)], 1)
    t.strictSame(await store.readTask(scope, 'over'), before)
    t.equal(
      await store.writeWebhook(
        scope,
        { taskId: 'over', id: 'w', webhook: { url: 'https://hooks.example/' }, version: '1.0' },
        1
      ),
      'written'
    )
    await store.close()
    t.equal(versionOf(file).version, SQLITE_MIGRATIONS.length)
  })
})

await t.test('a file whose messages have no generations is readable, and goes on with numbered ones', async t => {
  const file = fileIn(t)
  writeFileSync(file, unnumberedMessages('db'))
  const reader = readSqlite(file)
  const tasks = (await reader.listTasks(anyone, { limit: 10 })).tasks.toSorted(
    (one, two) => one.generation - two.generation
  )
  t.strictSame(
    tasks.map(({ generation, task: { history } }) => [generation, history?.length]),
    [
      [3, 3],
      [4, 2],
      [7, 4]
    ]
  )
  for (const { task, generation } of tasks)
    t.equal((await reader.readEvents(anyone, task.id, 0, 10)).length, generation)
  await reader.close()
  const version = () => {
    let found: unknown
    edit(file, database => (found = database.prepare('PRAGMA user_version').get()?.user_version))
    return found
  }
  t.equal(version(), 4, 'a reader changes nothing')
  await takesOver(t, opened(t, file))
  t.equal(version(), SQLITE_MIGRATIONS.length)
})

await t.test('a lost row is found, whether it is of an event or of a message', async t => {
  await findsLostRows(t, async (sql, write) => {
    const file = join(t.testdir(), 'tasks.db')
    const store = sqliteStore(file)
    await write(store)
    await store.close()
    edit(file, database => database.exec(sql))
    return sqliteStore(file, { logger: quiet().logger })
  })
})

await t.test(
  'the long texts of other tasks are not read on the way to a task',
  { skip: existsSync('/proc/self/io') ? false : 'the bytes that a process reads are known on Linux' },
  async t => {
    const file = fileIn(t)
    const store = sqliteStore(file)
    const long = 'x'.repeat(2 ** 20)
    for (const [taskId, text] of [
      ['one', long],
      ['short', 'x'],
      ['other', long]
    ] as const) {
      await store.commit(opening(taskId, { text }))
      await store.commit(ending(taskId, { text }))
    }
    await store.close()
    const reader = readSqlite(file)
    t.teardown(() => reader.close())
    const readBytes = () => Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])
    const before = readBytes()
    for (let i = 0; i < 10; i += 1) {
      t.match(await reader.readTask(scope, 'short'), {
        task: { artifacts: [{ parts: [{ text: 'x' }] }], history: [{ parts: [{ text: 'x' }] }] }
      })
      t.equal(await reader.readSend(scope, 'none'), undefined)
    }
    t.ok(readBytes() - before < 2 ** 20, `${readBytes() - before} bytes`)
  }
)

await t.test('a file whose tables do not match its version is refused by readers', async t => {
  const file = await written(t)
  edit(file, database => database.exec('ALTER TABLE contexts RENAME COLUMN messages TO massages'))
  t.match(
    refusal(() => readSqlite(file)),
    { name: 'StorageError', message: /cannot be used: .*messages/ }
  )
})

for (const driver of DRIVERS)
  await t.test(`transitions are counted with ${driver}`, async t =>
    transitionSuite(t, opened(t, fileIn(t), { driver }))
  )

await t.test('a damaged count of a transition is unreadable, and begins again', async t => {
  const file = await written(t)
  const store = opened(t, file)
  await store.countTransitions?.([counted('a', 'go', 5), counted('a', 'stop', 5)], 1)
  await store.close()
  edit(file, database => database.exec("UPDATE transitions SET count = 99 WHERE taken = 'go'"))
  const again = opened(t, file, { logger: quiet().logger })
  await t.rejects(async () => again.readTransitions?.('a'), {
    code: 'InternalError',
    message: 'The counts of transitions cannot be read: its stored data is damaged.'
  })
  await again.countTransitions?.([counted('a', 'go', 1), counted('a', 'stop', 1)], 2)
  t.strictSame(await again.readTransitions?.('a'), [counted('a', 'go', 1), counted('a', 'stop', 6)])
})

await t.test('a damaged webhook is unreadable, gets no updates and can be deleted; others work', async t => {
  const file = await written(t)
  const [first, second] = ['w', 'x'].map(id => ({
    taskId: 'over',
    id,
    webhook: { url: 'https://hooks.example/' },
    version: '1.0'
  }))
  const store = opened(t, file)
  for (const webhook of [first, second]) if (webhook) await store.writeWebhook(scope, webhook, 2)
  await store.close()
  edit(file, database => database.exec("UPDATE webhooks SET body = replace(body, 'hooks', 'thief') WHERE id = 'w'"))
  const { logger, said } = quiet()
  const again = opened(t, file, { logger })
  await t.rejects(again.readWebhooks(scope, 'over'), {
    code: 'InternalError',
    message: 'Task over cannot be read: its stored data is damaged.'
  })
  t.strictSame(
    (await again.readOpenWebhooks(1, 0)).map(({ row }) => row.id),
    ['x'],
    'another takes its place'
  )
  t.match(said, [/^Task over cannot be read/, /^The webhook with the row \d+ cannot be read/])
  const note = (id: string) => ({ scope, taskId: 'over', id, progress: { told: 9, tries: 0 } })
  t.strictSame(await again.noteWebhooks([note('w'), note('x')]), [false, true])
  t.equal(await again.deleteWebhook(scope, 'over', 'w'), true)
  t.strictSame(
    (await again.readWebhooks(scope, 'over')).map(({ row }) => row.id),
    ['x']
  )
  await again.close()
  for (const sql of ["UPDATE tasks SET state = '' WHERE taskId = 'over'", "UPDATE scopes SET tenant = 'x'"]) {
    edit(file, database => database.exec(sql))
    const damaged = opened(t, file, { logger })
    t.strictSame(await damaged.readOpenWebhooks(10, 0), [], sql)
    await damaged.close()
  }
})

await t.test('damage is detected anywhere, and never served', async t => {
  /** Reads a file after a change that no checksum knows of. */
  const changed = async (t: Test, sql: string) => {
    const file = await written(t)
    edit(file, database => database.exec(sql))
    const { logger, said } = quiet()
    return { store: opened(t, file, { logger }), said }
  }
  const damaged = (what: string) => ({
    name: 'A2AError',
    code: 'InternalError',
    message: `${what} cannot be read: its stored data is damaged.`
  })

  await t.test('a task with a damaged event, message or count is unreadable and unlisted; others work', async t => {
    for (const sql of [
      "UPDATE events SET body = replace(body, 'result of over', 'another thing!') WHERE generation = 2",
      'DELETE FROM events WHERE generation = 2',
      "UPDATE messages SET body = replace(body, 'words of over', 'words of anna')",
      "DELETE FROM messages WHERE task = (SELECT task FROM tasks WHERE taskId = 'over')"
    ]) {
      const { store, said } = await changed(t, sql)
      await t.rejects(store.readTask(scope, 'over'), damaged('Task over'), sql)
      if (sql.includes('events'))
        for (const bytes of [undefined, 1e6])
          await t.rejects(store.readEvents(scope, 'over', 0, 10, bytes), damaged('Task over'))
      t.equal(
        (await store.readTask(scope, 'over', { historyLength: 0, artifacts: false }))?.task.status.state,
        'TASK_STATE_COMPLETED',
        'its status is whole'
      )
      t.equal((await store.listTasks(scope, { limit: 10 })).total, 2)
      t.strictSame(await taskIds(store), ['live'])
      t.strictSame(await tasksIn(store, contextKey('context of over')), [])
      t.match(said[0], 'Task over cannot be read')
      t.equal(await store.commit(opening('new')), true)
      await store.close()
    }
  })

  await t.test('damage is logged once, by name', async t => {
    const { store, said } = await changed(t, "UPDATE events SET body = '{}' WHERE generation = 2")
    for (let i = 0; i < 2; i += 1) await t.rejects(store.readTask(scope, 'over'), damaged('Task over'))
    t.strictSame(said, ['Task over cannot be read: its stored data is damaged.'])
    t.ok(await store.readTask(scope, 'live'))
    t.equal(said.length, 1)
  })

  await t.test("a task with a damaged row is unusable, and its context's other tasks work", async t => {
    const { store, said } = await changed(t, "UPDATE tasks SET generation = 7 WHERE taskId = 'live'")
    await t.rejects(store.readTask(scope, 'live', { historyLength: 0, artifacts: false }), damaged('Task live'))
    await t.rejects(store.readJournal(scope, 'live'), damaged('Task live'))
    t.strictSame((await store.loadContext(contextKey('context of live')))?.tasks, [])
    t.strictSame(await store.readWakes(10, { atMs: 0, taskId: '' }), [])
    t.ok(said.length > 0)
    await t.rejects(store.commit(ending('live')), damaged('Task live'))
    t.equal(await store.commit(opening('new', { contextId: 'context of live', expected: 1 })), true)
    t.strictSame(
      (await store.loadContext(contextKey('context of live')))?.tasks.map(({ taskId }) => taskId),
      ['new']
    )
  })

  await t.test('a task whose snapshot is damaged or missing is not restored, and unreadable', async t => {
    for (const sql of ["UPDATE snapshots SET snapshot = '{}'", 'DELETE FROM snapshots']) {
      const { store } = await changed(t, sql)
      await t.rejects(store.readTask(scope, 'live'), damaged('Task live'))
      t.strictSame((await store.loadContext(contextKey('context of live')))?.tasks, [])
      t.ok(await store.readTask(scope, 'over'))
      await store.close()
    }
  })

  await t.test('a missing status is not invented', async t => {
    const { store } = await changed(t, 'DELETE FROM events WHERE generation = 3')
    await t.rejects(store.readTask(scope, 'over', { historyLength: 0, artifacts: false }), damaged('Task over'))
  })

  await t.test('a damaged context is unusable, and does not affect other commits in its batch', async t => {
    const { store } = await changed(t, "UPDATE contexts SET commits = 5 WHERE contextId = 'context of live'")
    await t.rejects(store.loadContext(contextKey('context of live')), damaged('Context context of live'))
    await t.rejects(store.readMessages(contextKey('context of live'), 1), damaged('Context context of live'))
    const outcomes = await Promise.allSettled([
      store.commit(opening('a')),
      store.commit(ending('live', { expected: 5 })),
      store.commit(opening('b')),
      store.commit(opening('a'))
    ])
    t.strictSame(
      outcomes.map(outcome => (outcome.status === 'fulfilled' ? outcome.value : outcome.reason.message)),
      [true, damaged('Context context of live').message, true, false]
    )
    t.ok(await store.readTask(scope, 'live'))
  })

  await t.test('a damaged journal, message or send is detected when it is read', async t => {
    const file = await written(t)
    const store = sqliteStore(file)
    const send = { key: 's', fingerprint: 'f', atMs: 0, expiresAtMs: 10, taskId: 'live' }
    await store.commit({ ...opening('more', { contextId: 'context of live', expected: 1 }), sends: [send] })
    t.strictSame(await store.readSend(scope, 's'), send)
    await store.close()
    edit(file, database =>
      database.exec(
        "UPDATE journal SET body = '1'; UPDATE sends SET body = '{}'; UPDATE messages SET body = '{}' WHERE number = 2"
      )
    )
    const again = opened(t, file)
    await t.rejects(again.readJournal(scope, 'live'), damaged('Task live'))
    await t.rejects(again.readSend(scope, 's'), damaged('The record of the message'))
    await t.rejects(again.readMessages(contextKey('context of live'), 5), damaged('Context context of live'))
    t.equal((await again.readMessages(contextKey('context of over'), 5)).length, 1)
  })

  await t.test('a damaged scope hides its wakes and itself, and is reported when requested', async t => {
    const file = await written(t)
    const store = sqliteStore(file)
    await store.commit({ ...opening('theirs'), key: { tenant: 'x', principal: 'bob', contextId: 'c' } })
    await store.close()
    edit(file, database => database.exec("UPDATE scopes SET sum = 1 WHERE tenant = ''"))
    const { logger, said } = quiet()
    const again = opened(t, file, { logger })
    t.strictSame(
      (await again.readWakes(1, { atMs: 0, taskId: '' })).map(({ taskId }) => taskId),
      ['theirs'],
      'later ones are not lost'
    )
    await t.rejects(again.listTasks(scope, { limit: 1 }), damaged('What the caller has'))
    const reader = readSqlite(file, { logger })
    t.teardown(() => reader.close())
    t.strictSame(await reader.scopes(), [{ tenant: 'x', principal: 'bob' }])
    t.ok(said.length >= 2)
  })

  await t.test('a store refuses a file with a damaged index, and a reader skips its rows', async t => {
    for (const sql of [
      "DELETE FROM tasks WHERE taskId = 'over'",
      "UPDATE tasks SET time = '1999' WHERE taskId = 'over'"
    ]) {
      const file = await written(t)
      editBesideIndex(file, 'tasks_of_scope', sql)
      t.match(
        refusal(() => sqliteStore(file)),
        { name: 'StorageError', message: /tasks\.db is damaged: .* index tasks_of_scope.* Restore a backup/s }
      )
      const reader = readSqlite(file, { logger: quiet().logger })
      t.strictSame(await taskIds(reader), ['live'])
      await reader.close()
    }
  })

  await t.test('a number out of range is damage too', async t => {
    const { store } = await changed(t, "UPDATE tasks SET generation = 9007199254740993 WHERE taskId = 'over'")
    await t.rejects(store.readTask(scope, 'over'), damaged('Task over'))
  })

  await t.test('a damaged ended task can be swept, and its context erased', async t => {
    const { store } = await changed(
      t,
      "UPDATE tasks SET statusAt = 1 WHERE taskId = 'over'; UPDATE contexts SET atMs = 1 WHERE contextId = 'context of live'"
    )
    t.equal(await store.sweep({ endedBeforeMs: 10, idleBeforeMs: 0, sendsBeforeMs: 0 }, 10), 1)
    t.equal(await store.readTask(scope, 'over'), undefined)
    t.equal(await store.erase(contextKey('context of live')), true)
    t.strictSame(await taskIds(store), [])
  })
})

await t.test('a log may include events of other tasks, and of tasks without a status', async t => {
  const store = opened(t, fileIn(t))
  const key = contextKey('context of t')
  await store.commit(opening('t'))
  await store.commit(opening('elsewhere'))
  const { log } = ending('t')
  const words = { messageId: 'w', role: 'ROLE_USER' as const, parts: [{ text: 'more' }] }
  const [update] = ending('elsewhere').log
  t.equal(
    await store.commit({
      key,
      expected: 1,
      atMs: 0,
      snapshot: '',
      tasks: [],
      log: [{ message: words, taskId: 't' }, ...log, ...(update ? [update] : [])],
      journal: [],
      sends: [],
      webhooks: []
    }),
    true
  )
  t.match(await store.readTask(scope, 't'), {
    generation: 3,
    task: { status: { state: 'TASK_STATE_COMPLETED' }, history: [{ messageId: 'm-t' }, { messageId: 'w' }] }
  })
  await store.commit({
    key,
    expected: 2,
    atMs: 0,
    snapshot: '',
    tasks: [],
    log: [{ message: { ...words, messageId: 'late' }, taskId: 't', generation: 3 }],
    journal: [],
    sends: [],
    webhooks: []
  })
  t.equal((await store.readTask(scope, 't'))?.task.history?.at(-1)?.messageId, 'late')
  t.equal((await store.readTask(scope, 'elsewhere'))?.generation, 1, 'a task of another context is unchanged')
  await store.commit({
    key,
    expected: 3,
    atMs: 0,
    snapshot: '',
    tasks: [{ taskId: 'silent', generation: 0, state: 'TASK_STATE_SUBMITTED', snapshot: '{}' }],
    log: [{ message: words, taskId: 'unknown', generation: 4 }],
    journal: [],
    sends: [],
    webhooks: []
  })
  t.strictSame(await store.readTask(scope, 'silent', { historyLength: 0, artifacts: false }), {
    task: { id: 'silent', contextId: 'context of t', status: { state: 'TASK_STATE_SUBMITTED' } },
    generation: 0
  })
  t.strictSame(await store.readMessages(key, 1), [{ message: words, taskId: 'unknown', generation: 4 }])
})

await t.test('the most recently used rows are cached, and the least recently used are evicted', t => {
  const recent = new LruCache<string>(2)
  let reads = 0
  const get = (name: string) => recent.get(name, () => `${name} ${(reads += 1)}`)
  for (const name of ['a', 'b', 'a', 'c']) get(name)
  t.strictSame([get('a'), get('c'), get('b')], ['a 1', 'c 3', 'b 4'])
  t.equal(
    recent.get('nothing', () => undefined),
    undefined
  )
  recent.clear()
  t.equal(get('a'), 'a 5')
  t.end()
})

await t.test('a thread that cannot start stops the store', async t => {
  const dir = join(t.testdir({ gone: {} }), 'gone')
  const { logger, said } = quiet()
  const store = sqliteStore(join(dir, 'tasks.db'), { logger })
  rmSync(dir, { recursive: true })
  const calls = [store.commit(opening('a')), store.erase(scope), store.readTask(scope, 'a')]
  for (const call of await Promise.allSettled(calls))
    t.match(call, { status: 'rejected', reason: { name: 'StorageError', message: /tasks\.db can no longer be used/ } })
  await store.close()
  t.match(said, [/the store has stopped/])
})

await t.test('erased data is gone from the file and its log', async t => {
  const file = fileIn(t)
  const store = opened(t, file)
  await store.commit(opening('secret', { text: 'the words that are to go' }))
  await store.commit(ending('secret', { text: 'the result that is to go' }))
  await store.commit(opening('kept'))
  const holds = (text: string) =>
    [file, `${file}-wal`].some(name => existsSync(name) && readFileSync(name).includes(text))
  t.ok(holds('the words that are to go') && holds('the result that is to go'))
  t.equal(await store.erase(contextKey('context of secret')), true)
  for (const text of ['that are to go', 'that is to go', 'of secret', 'm-secret']) t.notOk(holds(text), text)
  t.ok(holds('words of kept'))
})

await t.test('a store counts its unanswered calls', async t => {
  const store = opened(t, fileIn(t))
  const calls = [
    ...['a', 'b', 'c'].map(contextId => store.commit(opening(contextId, { contextId }))),
    store.sweep({ endedBeforeMs: 0, idleBeforeMs: 0, sendsBeforeMs: 0 }, 1),
    store.countOpen({})
  ]
  t.strictSame(store.status?.(), { isStopped: false, waitingReads: 1, waitingWrites: 4 }, 'before they are sent')
  await new Promise(setImmediate)
  t.match(store.status?.(), { waitingReads: 1, waitingWrites: 4 }, 'and after')
  await Promise.all(calls)
  t.match(store.status?.(), { waitingReads: 0, waitingWrites: 0 })
})

for (const isRead of [true, false])
  await t.test(
    `a file that is corrupt ${isRead ? 'after' : 'before'} its thread reads it stops the store: every call and its owner receive the reason`,
    async t => {
      const file = fileIn(t)
      const before = sqliteStore(file)
      for (let i = 0; i < 50; i += 1) await before.commit(opening(`t${i}`, { text: 'x'.repeat(2000) }))
      await before.close()
      const { logger, said } = quiet()
      const stops: Error[] = []
      const store = opened(t, file, { logger, stopped: error => stops.push(error) })
      // Then the thread has the schema, which takes more than page 1, but not the pages of lists.
      if (isRead) await store.readSend(scope, 'none')
      const descriptor = openSync(file, 'r+')
      for (let page = 1; page < statSync(file).size / 4096; page += 1)
        writeSync(descriptor, Buffer.alloc(4096, 0xff), 0, 4096, page * 4096)
      closeSync(descriptor)
      const message = /tasks\.db can no longer be used: .*(?:malformed|damaged|SQLITE_CORRUPT).*start again/
      t.strictSame(store.status?.(), { isStopped: false, waitingReads: 0, waitingWrites: 0 })
      await t.rejects(store.listTasks(scope, { limit: 10 }), { message })
      await t.rejects(store.commit(opening('late')), { name: 'StorageError', message })
      await t.rejects(store.readTask(scope, 't1'), { message })
      t.equal(stops.length, 1)
      t.ok(store.status?.().isStopped)
      t.match(said, [/the store has stopped: .*tasks\.db can no longer be used/])
      await store.close()
      t.match(
        refusal(() => sqliteStore(file)),
        { name: 'StorageError', message: /tasks\.db (?:is damaged|cannot be used)/ },
        'nor can it be opened again'
      )
    }
  )
