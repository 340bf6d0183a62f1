import '../../fixtures/stores/needs-sqlite.ts'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { rowsOf } from '../../../adapters/rows/commit-rows.ts'
import { type Database, sqliteReasonOf, classifySqliteError } from '../../../adapters/storage/driver.ts'
import { Engine } from '../../../adapters/storage/engine.ts'
import { openForWriting, prepareFile } from '../../../adapters/storage/file/open-file.ts'
import { readSqlite, sqliteStore } from '../../../adapters/storage/sqlite.ts'
import { StorageError } from '../../../adapters/rows/damage.ts'
import type { StoreReader } from '../../../adapters/rows/store-reader.ts'
import { createRuntime, defineAgent, text } from '../../../runtime/index.ts'
import type { Commit } from '../../../runtime/store/store.ts'
import { spawnBare } from '../../fixtures/processes/bare-process.ts'
import { keepResult } from '../../fixtures/kills/guarantee-results.ts'
import { IS_DEEP, IS_WHOLE, sampleOf } from '../../fixtures/sample.ts'
import {
  contextKey,
  editBesideIndex,
  ending,
  opening,
  quiet,
  scope,
  taskIds
} from '../../fixtures/stores/stored-tasks.ts'

const HERE = import.meta.url

/** An engine in this thread, on a file that is ready; `wrap` stands between it and SQLite. */
function engineOn(
  t: Test,
  file: string,
  wrap: (database: Database) => Database = database => database
): { engine: Engine; database: Database } {
  const release = prepareFile(file, undefined)
  const database = openForWriting(file, undefined)
  const engine = new Engine(wrap(database), file, () => {})
  t.teardown(() => {
    engine.close()
    release()
  })
  return { engine, database }
}

const written = (engine: Engine, ...commits: Commit[]) => engine.commitAll(commits.map(rowsOf))

/** Opens a file as a store does, and then for reading, in this thread. */
function reopened(file: string, logger = quiet().logger): StoreReader {
  prepareFile(file, undefined)()
  return readSqlite(file, { logger })
}

/** Everything that a store says, of tasks that are there or are not: what it refuses to say is told by its message. */
async function picture(store: StoreReader, taskIds: readonly string[]): Promise<string[]> {
  const ask = async (what: string, answer: Promise<unknown>) =>
    `${what} ${JSON.stringify(await answer.catch((error: unknown) => ({ refused: String(error) })))}`
  return Promise.all(
    taskIds.flatMap(id => [
      ask(`task ${id}`, store.readTask(scope, id)),
      ask(`events ${id}`, store.readEvents(scope, id, 0, 100)),
      ask(`context ${id}`, store.loadContext(contextKey(`context of ${id}`))),
      ask(`messages ${id}`, store.readMessages(contextKey(`context of ${id}`), 100)),
      ask(`journal ${id}`, store.readJournal(scope, id))
    ])
  )
}

await t.test('commits of one transaction', async t => {
  await t.test('leave what they leave in transactions of their own', async t => {
    const { log, ...later } = ending('b')
    const going = {
      ...later,
      tasks: [{ taskId: 'b', generation: 2, state: 'TASK_STATE_SUBMITTED' as const, snapshot: '{"later":true}' }],
      log: log.slice(0, 1)
    }
    const steps = [
      opening('a'),
      ending('a'),
      opening('b'),
      going,
      opening('c', { contextId: 'context of a', expected: 2 }),
      opening('d', { expected: 7 })
    ]
    const dir = t.testdir()
    const [together, apart] = [engineOn(t, join(dir, 'together.db')), engineOn(t, join(dir, 'apart.db'))]
    const outcomes = [true, true, true, true, true, false]
    t.strictSame(written(together.engine, ...steps), outcomes)
    t.strictSame(
      steps.flatMap(step => written(apart.engine, step)),
      outcomes
    )
    for (const table of ['contexts', 'tasks', 'snapshots', 'events', 'messages', 'journal']) {
      const rows = [together, apart].map(({ database }) =>
        database.prepare(`SELECT * FROM ${table} ORDER BY 1, 2`).all()
      )
      t.strictSame(rows[0], rows[1], table)
    }
  })

  await t.test('fail alone if their task has the id of another in the transaction', async t => {
    const { engine } = engineOn(t, join(t.testdir(), 'tasks.db'))
    t.match(written(engine, opening('a'), opening('a', { contextId: 'another' }), opening('b')), [
      true,
      { message: /UNIQUE/ },
      true
    ])
    t.equal(engine.read(reads => reads.readTask(scope, 'a'))?.task.contextId, 'context of a')
  })
})

await t.test('a full disk', async t => {
  await t.test('rejects commits without harm to others; reads work, and commits resume with space', async t => {
    const { engine, database } = engineOn(t, join(t.testdir(), 'tasks.db'))
    t.strictSame(written(engine, opening('first')), [true])
    const pages = Number(database.prepare('PRAGMA page_count').get()?.page_count)
    database.exec(`PRAGMA max_page_count = ${pages + 4}`)
    const [large, small] = written(engine, opening('large', { text: 'x'.repeat(100_000) }), opening('small'))
    for (const outcome of [large, small]) t.equal(classifySqliteError(outcome), 'full')
    t.equal(engine.broken, undefined)
    t.equal(engine.read(reads => reads.readTask(scope, 'first'))?.generation, 1)
    t.equal(
      engine.read(reads => reads.readTask(scope, 'large')),
      undefined
    )
    t.equal(
      engine.read(reads => reads.readTask(scope, 'small')),
      undefined
    )
    database.exec('PRAGMA max_page_count = 1000000')
    t.strictSame(written(engine, opening('large', { text: 'x'.repeat(100_000) }), opening('small')), [true, true])
    await keepResult({ trouble: 'full', times: 1 })
  })

  const mounted = mkdtempSync(join(tmpdir(), 'disk-'))
  const canMount = (() => {
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', mounted], { stdio: 'ignore' })
      return true
    } catch {
      return false
    }
  })()
  t.teardown(() => {
    if (canMount) execFileSync('umount', ['-l', mounted])
    rmdirSync(mounted)
  })

  await t.test(
    'on a real mount refuses new work with Overloaded, until there is space',
    { skip: canMount ? false : 'this user may mount no disk' },
    async t => {
      const { logger } = quiet()
      const store = sqliteStore(join(mounted, 'tasks.db'), { logger })
      const agent = defineAgent({ card: { name: 'Keeps' }, work: async () => ({ artifact: text('kept') }) })
      const runtime = createRuntime({ agent, store, logger })
      t.teardown(() => runtime.close())
      const send = (words: string) =>
        runtime.sendMessage({ message: { messageId: 'm', role: 'ROLE_USER', parts: [text(words)] } })
      const first = await send('hello')
      const ballast = join(mounted, 'ballast')
      for (let bytes = 1024 * 1024; bytes >= 4096; bytes /= 2) {
        try {
          for (let i = 0; ; i += 1) writeFileSync(`${ballast} ${bytes} ${i}`, Buffer.alloc(bytes))
        } catch {
          // No room for another of this size.
        }
      }
      let refusals = 0
      for (let i = 0; i < 20; i += 1)
        await send('x'.repeat(50_000)).catch((error: unknown) => {
          t.match(error, { code: 'Overloaded' })
          refusals += 1
        })
      t.ok(refusals > 10)
      t.match(await runtime.getTask({ id: 'task' in first ? first.task.id : '' }), {
        status: { state: 'TASK_STATE_COMPLETED' }
      })
      execFileSync('sh', ['-c', `rm -f '${ballast}'*`])
      t.match(await send('again'), { task: { status: { state: 'TASK_STATE_COMPLETED' } } })
      await keepResult({ trouble: 'full', times: 1 })
    }
  )
})

await t.test('a failed sync stops the engine, which then neither retries, reads nor writes', async t => {
  const file = join(t.testdir(), 'tasks.db')
  let failing = ''
  const failed = Object.assign(new TypeError('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' })
  const { engine } = engineOn(t, file, database => ({
    ...database,
    close: () => database.close(),
    prepare: sql => database.prepare(sql),
    exec: sql => {
      if (sql === failing) throw failed
      return database.exec(sql)
    }
  }))
  t.strictSame(written(engine, opening('a')), [true])
  failing = 'COMMIT'
  const message = `${file} can no longer be used: disk I/O error (SQLITE_IOERR_FSYNC).`
  for (const outcome of written(engine, opening('b'), opening('c'))) t.match(outcome, { name: 'StorageError', message })
  failing = ''
  for (const outcome of written(engine, opening('d'))) t.match(outcome, { message })
  t.throws(() => engine.read(reads => reads.readTask(scope, 'a')), { message })
  t.throws(() => engine.sweep({ endedBeforeMs: 1, idleBeforeMs: 1, sendsBeforeMs: 1 }, 1), { message })
  t.match(engine.broken, StorageError)
  engine.checkpoint()
})

await t.test('an error of neither the disk nor a row fails only its call', async t => {
  let isFailing = false
  const { engine } = engineOn(t, join(t.testdir(), 'tasks.db'), database => ({
    exec: sql => database.exec(sql),
    close: () => database.close(),
    prepare: sql => {
      const statement = database.prepare(sql)
      const checked = <T>(run: () => T) => {
        if (isFailing) throw new TypeError('odd')
        return run()
      }
      return {
        run: (...values) => checked(() => statement.run(...values)),
        get: (...values) => checked(() => statement.get(...values)),
        all: (...values) => statement.all(...values),
        iterate: (...values) => statement.iterate(...values)
      }
    }
  }))
  written(engine, opening('a'))
  isFailing = true
  t.throws(() => engine.read(reads => reads.readTask(scope, 'a')), { message: 'odd' })
  t.throws(() => engine.read(reads => reads.readWakes(1, { atMs: 0, taskId: '' })), { message: 'odd' })
  t.match(written(engine, opening('b')), [{ message: 'odd' }])
  t.equal(sqliteReasonOf(new TypeError('odd')), 'odd')
  isFailing = false
  t.equal(engine.read(reads => reads.readTask(scope, 'a'))?.generation, 1)
  t.strictSame(written(engine, opening('b')), [true])
})

await t.test('the log is checkpointed at its threshold; without space it is left for later', async t => {
  let isFull = true
  const file = join(t.testdir(), 'tasks.db')
  const { engine } = engineOn(t, file, database => ({
    exec: sql => database.exec(sql),
    close: () => database.close(),
    prepare: sql => {
      if (isFull && sql.includes('wal_checkpoint'))
        throw Object.assign(new TypeError('database or disk is full'), { code: 'SQLITE_FULL' })
      return database.prepare(sql)
    }
  }))
  const size = () => statSync(file).size
  const before = size()
  written(engine, ...Array.from({ length: 1100 }, (_, i) => opening(`t${i}`, { text: 'x'.repeat(20_000) })))
  engine.tidy()
  t.equal(size(), before)
  t.equal(engine.broken, undefined)
  isFull = false
  engine.tidy()
  t.equal(size(), before, 'not at once')
  written(engine, ...Array.from({ length: 1100 }, (_, i) => opening(`u${i}`, { text: 'x'.repeat(20_000) })))
  engine.tidy()
  t.ok(size() > before)
})

/** The files of a store as a killed process leaves them: with all that was committed in the log. */
async function leftBehind(t: Test): Promise<{ dir: string; ids: string[] }> {
  const dir = t.testdir()
  const store = sqliteStore(join(dir, 'live.db'))
  const ids: string[] = []
  for (let i = 0; i < 12; i += 1) {
    ids.push(`t${i}`)
    await store.commit(opening(`t${i}`))
    if (i % 2 === 0) await store.commit(ending(`t${i}`))
  }
  for (const end of ['', '-wal']) copyFileSync(join(dir, `live.db${end}`), join(dir, `left.db${end}`))
  await store.close()
  copyFileSync(join(dir, 'live.db'), join(dir, 'whole.db'))
  return { dir, ids }
}

await t.test('a truncated log gives the commits before the cut; one without its start is refused', async t => {
  const { dir, ids } = await leftBehind(t)
  const size = statSync(join(dir, 'left.db-wal')).size
  const counts: number[] = []
  // The log's header, and page 1, without which its file is known not to be whole.
  const beginning = 32 + 4120
  for (let length = 0; length <= size; length = length < beginning ? length + 2056 : length + 4120 * 7 + 512 * 3) {
    for (const end of ['', '-wal']) copyFileSync(join(dir, `left.db${end}`), join(dir, `cut.db${end}`))
    truncateSync(join(dir, 'cut.db-wal'), length)
    if (length < beginning) {
      t.throws(() => reopened(join(dir, 'cut.db')), { name: 'StorageError', message: /cut\.db is incomplete/ })
      t.throws(() => readSqlite(join(dir, 'cut.db')), { name: 'StorageError', message: /cut\.db is incomplete/ })
      t.ok(existsSync(join(dir, 'cut.db-wal')), 'the rest of the log is unchanged')
      continue
    }
    const store = reopened(join(dir, 'cut.db'))
    const found = new Set(await taskIds(store))
    const count = ids.filter(id => found.has(id)).length
    t.strictSame(
      ids.slice(0, count),
      ids.filter(id => found.has(id)),
      'the first ones'
    )
    for (const id of ids.slice(0, count)) {
      const stored = await store.readTask(scope, id)
      const context = await store.loadContext(contextKey(`context of ${id}`))
      t.equal(stored?.generation, context?.commit === 2 ? 3 : 1, 'task and context are of one commit')
    }
    counts.push(count)
    await store.close()
  }
  t.strictSame([counts[0], counts.at(-1) ?? 0], [0, counts.toSorted((a, b) => b - a)[0]])
  t.ok(counts.every((count, i) => count >= (counts[i - 1] ?? 0)))
})

/**
 * A byte changed at some places of a file: what comes of it is refused, or left out or answered with an error, or as it
 * was.
 */
async function flipped(
  t: Test,
  { name, beside }: { name: string; beside: readonly string[] },
  positions: number
): Promise<Map<string, number>> {
  const { dir, ids } = await leftBehind(t)
  const outcomes = new Map([
    ['refused', 0],
    ['error', 0],
    ['before', 0],
    ['unchanged', 0]
  ])
  const whole = await (async () => {
    const store = reopened(join(dir, 'whole.db'))
    const asIs = await picture(store, ids)
    await store.close()
    return asIs
  })()
  const bytes = readFileSync(join(dir, name))
  for (let i = 0; i < positions; i += 1) {
    const position = Math.floor(((i + 0.5) * bytes.length) / positions)
    const target = join(dir, `flip.db${name.endsWith('-wal') ? '-wal' : ''}`)
    for (const end of ['-wal', '-shm', '']) rmSync(join(dir, `flip.db${end}`), { force: true })
    for (const other of beside) copyFileSync(join(dir, other), join(dir, other.replace('left', 'flip')))
    const changed = Buffer.from(bytes)
    changed[position] = (changed[position] ?? 0) ^ (1 << (i % 8))
    writeFileSync(target, changed)
    const { logger, said: reported } = quiet()
    let outcome = 'unchanged'
    try {
      const store = reopened(join(dir, 'flip.db'), logger)
      const now = await picture(store, ids)
      await store.close()
      for (const [line, said] of now.entries()) {
        if (said === whole[line]) continue
        const isLeftOut = reported.length > 0 && said.startsWith('context') && said.includes('"tasks":[]')
        if (said.includes('"refused"') || isLeftOut) outcome = 'error'
        else if (name.endsWith('-wal')) outcome = outcome === 'error' ? 'error' : 'before'
        else t.fail(`byte ${position}: ${said} was ${whole[line]}`)
      }
    } catch (error) {
      t.type(error, StorageError, `byte ${position}: ${String(error)}`)
      outcome = 'refused'
    }
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
  }
  return outcomes
}

await t.test('a flipped bit anywhere in the file is detected or has no visible effect', async t => {
  const outcomes = await flipped(t, { name: 'whole.db', beside: [] }, IS_WHOLE ? 150 : IS_DEEP ? 80 : 40)
  t.comment(JSON.stringify([...outcomes]))
  t.ok((outcomes.get('refused') ?? 0) > 0 && (outcomes.get('error') ?? 0) > 0)
})

await t.test('a file too large to check is opened, and its rows are checked when read', async t => {
  const file = join(t.testdir(), 'tasks.db')
  const store = sqliteStore(file)
  await store.commit(opening('a'))
  await store.close()
  editBesideIndex(file, 'tasks_of_scope', "UPDATE tasks SET time = '1999'")
  t.throws(() => prepareFile(file, undefined), { message: /is damaged/ })
  prepareFile(file, undefined, 0)()
  const reader = readSqlite(file, { logger: quiet().logger })
  await t.rejects(reader.readTask(scope, 'a'), { code: 'InternalError' })
  await reader.close()
})

await t.test('a flipped bit in the log gives the commits before it, or a refusal', async t => {
  const outcomes = await flipped(t, { name: 'left.db-wal', beside: ['left.db'] }, 24)
  t.comment(JSON.stringify([...outcomes]))
  t.equal(outcomes.get('error'), 0)
  t.ok((outcomes.get('refused') ?? 0) <= 1)
  t.ok((outcomes.get('before') ?? 0) > 16)
})

/** The tasks of a copy of a file without its log, or `undefined` if such a copy is refused. */
async function idsInCopy(file: string): Promise<string[] | undefined> {
  copyFileSync(file, `${file}.alone`)
  try {
    const store = reopened(`${file}.alone`)
    const ids = await taskIds(store)
    await store.close()
    return ids
  } catch (error) {
    if (error instanceof StorageError) return undefined
    throw error
  }
}

await t.test('a killed process loses nothing acknowledged, and its file without the log is refused', async t => {
  const dir = t.testdir({
    'kill.mjs': `
      const { onKillPoint } = await import(${JSON.stringify(new URL('../../../runtime/primitives/kill-points.js', HERE).href)})
      let left = Number(process.env.KILL_AFTER)
      onKillPoint(point => { if (point === process.env.KILL_AT && (left -= 1) === 0) process.kill(process.pid, 'SIGKILL') })`
  })
  const writer = fileURLToPath(new URL('../../fixtures/stores/store-writer.js', HERE))
  const killedAt = async (point: string, hit: number) => {
    const file = join(dir, `${point}-${hit}.db`)
    // The thread of the store has the preloads that stand here, not those of a command line.
    const env = { NODE_OPTIONS: `--import ${join(dir, 'kill.mjs')}`, KILL_AT: point, KILL_AFTER: String(hit) }
    const child = spawnBare([writer, file, '2'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
    let said = ''
    child.stdout?.on('data', chunk => (said += String(chunk)))
    const [, signal] = await once(child, 'close')
    return { file, said, signal: signal as string | null }
  }
  for (const [point, hits] of [
    ['transaction open', [1, 2, 5]],
    ['sends written', [1, 4]],
    ['events written', [2, 4]],
    ['rows written', [1, 2, 3]],
    ['before sync', [1, 2, 6]],
    ['synced', [1, 2, 6]],
    ['before checkpoint', [1]],
    ['before sweep', [1, 2]],
    ['before migration', [1]],
    ['before log mark', [1, 2, 3]]
  ] as const) {
    for (const hit of sampleOf<number>(t, hits, 1)) {
      const { file, said, signal } = await killedAt(point, hit)
      const what = `${point} the ${hit}th time, after ${JSON.stringify(said)}`
      t.equal(signal, 'SIGKILL', what)
      const alone = idsInCopy(file)
      const store = sqliteStore(file)
      const ids = new Set(await taskIds(store))
      const copied = await alone
      if (copied) t.strictSame(copied, [...ids], `${what}: a copy without the log is refused, or whole`)
      for (const i of [0, 1]) {
        const kept = await store.readTask(scope, `kept ${i}`)
        if (said.includes(`committed ${i}`))
          t.match([kept, await store.readSend(scope, `s ${i}`)], [{ generation: 3 }, { taskId: `kept ${i}` }], what)
        if (said.includes(`swept ${i}`)) t.notOk(ids.has(`swept ${i}`), what)
        if (said.includes(`erased ${i}`)) t.notOk(ids.has(`erased ${i}`), what)
        t.equal(
          (await store.loadContext(contextKey(`context of kept ${i}`)))?.commit,
          kept && (kept.generation === 3 ? 2 : 1),
          `${what}: whole commits only`
        )
      }
      t.equal(await store.commit(opening('after')), true)
      await store.close()
    }
  }
})

await t.test('a folder without write permission is refused by name', t => {
  const dir = mkdtempSync(join(tmpdir(), 'taskchart-closed-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  chmodSync(dir, 0o555)
  // Root may write everywhere, so it is somebody else meanwhile.
  const isRoot = process.geteuid?.() === 0
  if (isRoot) process.seteuid?.('nobody')
  try {
    t.throws(() => sqliteStore(join(dir, 'tasks.db')), { name: 'StorageError', message: /tasks\.db/ })
  } finally {
    if (isRoot) process.seteuid?.('root')
  }
  t.notOk(existsSync(join(dir, 'tasks.db')))
  t.end()
})
