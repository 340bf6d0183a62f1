import '../../fixtures/stores/needs-postgres.ts'
import t, { type Test } from 'tap'
import { postgresStore, readPostgres, type PostgresOptions } from '../../../adapters/postgres/postgres.ts'
import { READS } from '../../../adapters/postgres/read/statements.ts'
import { poolOf } from '../../../adapters/postgres/session/pool.ts'
import { LOCK_CLASS } from '../../../adapters/postgres/schema/migrate.ts'
import {
  overloadedError,
  postgresReasonOf,
  Session,
  toStoreError,
  classifyPostgresError
} from '../../../adapters/postgres/session/session.ts'
import { READ_CONTEXTS } from '../../../adapters/postgres/write/known-rows.ts'
import { WRITE_ROWS, WriteGroups } from '../../../adapters/postgres/write/write-groups.ts'
import { createRuntime, defineAgent, text } from '../../../runtime/index.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { ByteCutter } from '../../fixtures/network/cut-at-byte.ts'
import { onDatabase, PostgresServer } from '../../fixtures/stores/postgres.ts'
import { reaches, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { IS_DEEP, sampleOf } from '../../fixtures/sample.ts'
import { contextKey, ending, opening, quiet, scope, taskIds } from '../../fixtures/stores/stored-tasks.ts'

const server = await PostgresServer.start()
t.teardown(() => server.stop())
const url = server.url()
let schemas = 0

async function opened(t: Test, place = url, options: PostgresOptions = {}) {
  const { logger, said } = quiet()
  const schema = options.schema ?? `f${(schemas += 1)}`
  const store = await postgresStore(place, { readers: 2, logger, ...options, schema })
  t.teardown(() => store.close())
  said.length = 0
  return { store, said, schema }
}

/** Resolves when the store answers again. */
async function back(store: Store): Promise<void> {
  await until(
    async () =>
      store.countOpen({}).then(
        () => true,
        () => false
      ),
    'the database is back'
  )
}

/** The process of the session that writes. */
const WRITER = `SELECT DISTINCT l.pid FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid::bigint = hashtext('taskchart ' || current_schema())::bigint & 4294967295`
const onWriter = (schema: string, action: string) =>
  onDatabase(url, `SET search_path = ${schema}; SELECT ${action}(pid) FROM (${WRITER}) AS writer`)

/** The distance of the bytes at which a commit is cut: after each cut the store needs a tenth of a second. */
const STRIDE = 5

const AWAY = {
  name: 'A2AError',
  code: 'Overloaded',
  message: 'The database of the agent is not available now. Send the request again later.'
}

await t.test(
  'a server that is killed under load and starts again has lost nothing that was acknowledged, and has nothing twice',
  async t => {
    const { store, said } = await opened(t)
    const acknowledged = new Set<string>()
    const outcomes = new Map<string, number>()
    const load = { isOver: false }
    const write = async (lane: number) => {
      for (let i = 0; !load.isOver; i += 1) {
        const taskId = `${lane}-${i}`
        const outcome = await Promise.all([store.commit(opening(taskId)), store.commit(ending(taskId))]).catch(
          (error: Error & { code?: string }) => error.code ?? error.message
        )
        outcomes.set(String(outcome), (outcomes.get(String(outcome)) ?? 0) + 1)
        if (String(outcome) === 'true,true') acknowledged.add(taskId)
        else await until(() => load.isOver || store.status?.().isStopped === false)
      }
    }
    const lanes = Array.from({ length: 8 }, (_, lane) => write(lane))
    const moreAcknowledged = async () => {
      const before = acknowledged.size
      await until(() => acknowledged.size > before + 20)
    }
    for (let kills = 0; kills < (IS_DEEP ? 5 : 2); kills += 1) {
      await moreAcknowledged()
      await server.kill()
      await until(() => store.status?.().isStopped)
      await t.rejects(store.readTask(scope, '0-0'), AWAY)
      t.equal(store.status?.().isStopped, true, 'which health checks see')
      await server.begin()
      await back(store)
    }
    t.equal(store.status?.().isStopped, false)
    await moreAcknowledged()
    load.isOver = true
    await Promise.all(lanes)
    t.strictSame([...outcomes.keys()].toSorted(), ['Overloaded', 'true,true'])
    for (const taskId of acknowledged) {
      const stored = await store.readTask(scope, taskId)
      t.strictSame(
        [stored?.generation, stored?.task.history?.length, stored?.task.artifacts?.length],
        [3, 1, 1],
        taskId
      )
    }
    t.strictSame(
      said,
      Array.from({ length: IS_DEEP ? 5 : 2 }, () => [
        'the database is away: calls are refused until it is back',
        'the database is back'
      ]).flat(),
      'one line when it goes, one when it is back'
    )
  }
)

await t.test(
  'a connection that is cut at any byte of a commit: what was acknowledged is there, and all of it or nothing',
  async t => {
    const seen = { kept: 0, lost: 0 }
    /** A store behind a proxy that cuts, and a reader that is not cut. */
    const lane = async () => {
      const cutter = await ByteCutter.to(server.port)
      t.teardown(() => cutter.close())
      const { store, schema } = await opened(t, server.url(cutter.port), { readers: 1 })
      const reader = await readPostgres(url, { schema })
      t.teardown(() => reader.close())
      await store.commit(opening('first', { contextId: 'c' }))
      let expected = 1
      const commit = async (taskId: string) => {
        const outcome = await store
          .commit(opening(taskId, { contextId: 'c', expected }))
          .catch((error: { code?: string }) => error.code)
        cutter.heal()
        // A session that was lost is over once the next one has its locks.
        await until(() => store.status?.().isStopped === false)
        const stored = await reader.loadContext(contextKey('c'))
        const task = await reader.readTask(scope, taskId)
        t.equal(stored?.commit, task ? expected + 1 : expected, `${taskId}: all or nothing`)
        if (outcome === true) t.ok(task, `${taskId}: acknowledged`)
        else t.equal(outcome, 'Overloaded', taskId)
        seen[task ? 'kept' : 'lost'] += 1
        expected = stored?.commit ?? 0
      }
      return { schema, cutter, commit }
    }
    const lanes = await Promise.all(Array.from({ length: 4 }, lane))
    const [{ cutter, commit }] = lanes as [Awaited<ReturnType<typeof lane>>]
    cutter.cut()
    await commit('cut before')
    const before = cutter.passed
    await commit('whole')
    const most = cutter.passed - before
    const ends = [5, 15, 30, 45, 60].map(fromEnd => most - fromEnd)
    const places = [
      ...new Set([
        ...sampleOf(
          t,
          Array.from({ length: Math.floor(most / STRIDE) }, (_, i) => 1 + STRIDE * i),
          8,
          24
        ),
        ...ends
      ])
    ]
    await Promise.all(
      lanes.map(async ({ cutter, commit }) => {
        for (let bytes = places.pop(); bytes !== undefined; bytes = places.pop()) {
          cutter.cutAfter(bytes)
          await commit(`cut after ${bytes}`)
        }
      })
    )
    t.ok(seen.kept > 2 && seen.lost > 2, JSON.stringify(seen))
    for (const { schema } of lanes) {
      const [counted] = await onDatabase(
        url,
        `SET search_path = ${schema}; SELECT (SELECT sum(count)::int FROM counters) AS counted, (SELECT count(*)::int FROM tasks) AS tasks`
      )
      t.equal(counted?.counted, counted?.tasks, 'counts are those of the tasks')
    }
  }
)

await t.test(
  'a session that is left behind on a dead network does not keep its process away from the database',
  async t => {
    const cutter = await ByteCutter.to(server.port)
    t.teardown(() => cutter.close())
    const { store, said } = await opened(t, server.url(cutter.port))
    await store.commit(opening('t'))
    cutter.cut({ leavesTarget: true })
    for (const outcome of await Promise.allSettled([store.commit(ending('t')), store.erase(scope)]))
      t.match(outcome, { status: 'rejected', reason: AWAY })
    await back(store)
    t.equal(await store.commit(ending('t')), true)
    t.equal(said.length, 2)
  }
)

await t.test('a read whose connection is cut is read again', async t => {
  const { store, schema } = await opened(t)
  await store.commit(opening('t'))
  await store.readTask(scope, 't')
  await onDatabase(
    url,
    `SET search_path = ${schema}; SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE application_name = 'taskchart' AND pid NOT IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')`
  )
  t.equal((await store.readTask(scope, 't'))?.generation, 1)
  const cutter = await ByteCutter.to(server.port)
  t.teardown(() => cutter.close())
  const { store: cut } = await opened(t, server.url(cutter.port), { readers: 1 })
  await cut.commit(opening('t'))
  await cut.readTask(scope, 't')
  cutter.cutAfter(50)
  t.equal((await cut.readTask(scope, 't'))?.generation, 1)
})

await t.test('a process that lost the database to another one is refused until that lets go of it', async t => {
  const { store, said, schema } = await opened(t)
  await store.commit(opening('mine'))
  // The other process has to come before the first one is back.
  let other: Store | undefined
  while (!other) {
    await back(store)
    said.length = 0
    await onWriter(schema, 'pg_terminate_backend')
    other = await postgresStore(url, { schema, readers: 1, logger: quiet().logger }).catch(() => undefined)
  }
  await t.rejects(store.commit(opening('late')), AWAY)
  t.strictSame(await taskIds(other), ['mine'])
  await other.commit(opening('theirs'))
  await until(() => said.length === 2)
  await t.rejects(store.readTask(scope, 'mine'), AWAY)
  await other.close()
  await back(store)
  t.strictSame(await taskIds(store), ['mine', 'theirs'])
  t.equal(await store.commit(ending('theirs')), true)
  t.match(said, [/is away/, /is in use by (?:another )?process/, /is back/])
})

await t.test(
  'a process that comes back does not end the session of one that has just taken the database, and says so each time',
  async t => {
    const { store, said, schema } = await opened(t)
    const pool = poolOf(url, 1)
    t.teardown(() => pool.end())
    for (const time of ['the first time', 'the second time']) {
      const other = await Session.open(pool, schema)
      // The other takes the locks, and has not written its name yet.
      for (let isTaken = false; !isTaken;) {
        await back(store)
        said.length = 0
        await onWriter(schema, 'pg_terminate_backend')
        const [[all] = []] = await other.once(`SELECT bool_and(pg_try_advisory_lock(${LOCK_CLASS}, shard)) FROM shards`)
        isTaken = all === 't'
        if (!isTaken) await other.once('SELECT pg_advisory_unlock_all()')
      }
      await until(() => said.some(line => /is in use by another process\./.test(line)), time)
      t.strictSame(await other.once('SELECT 1'), [['1']])
      other.close()
      await back(store)
    }
  }
)

await t.test('a statement that is canceled, or finds no connection, refuses its caller alone', async t => {
  const { store, schema } = await opened(t)
  await store.commit(opening('a'))
  const locker = poolOf(url, 1)
  t.teardown(() => locker.end())
  const session = await Session.open(locker, schema)
  await session.run('BEGIN; LOCK TABLE contexts IN EXCLUSIVE MODE')
  const blocked = store.commit(opening('b')).catch((error: unknown) => error)
  await until(async () => (await onDatabase(url, 'SELECT 1 FROM pg_locks WHERE NOT granted')).length > 0)
  await onWriter(schema, 'pg_cancel_backend')
  t.match(await blocked, AWAY)
  await session.run('COMMIT')
  session.close()
  t.equal(await store.commit(opening('b')), true)

  for (const statement of ['CREATE ROLE limited LOGIN CONNECTION LIMIT 2', 'GRANT ALL ON DATABASE postgres TO limited'])
    await onDatabase(url, statement)
  const { store: few } = await opened(t, url.replace('postgres:s3cr3t', 'limited'), { readers: 4 })
  await few.commit(opening('t'))
  const outcomes = await Promise.allSettled(Array.from({ length: 4 }, () => few.readTask(scope, 't')))
  t.ok(outcomes.some(({ status }) => status === 'fulfilled'))
  for (const outcome of outcomes) if (outcome.status === 'rejected') t.match(outcome.reason, AWAY)
})

await t.test(
  'an agent whose database goes away refuses its callers, and completes its tasks when it is back',
  async t => {
    const { store } = await opened(t)
    let release = () => {}
    const released = new Promise<void>(resolve => (release = resolve))
    const agent = defineAgent({
      card: { name: 'Waits' },
      work: async ({ step }) => {
        const runs = await step('wait', async () => released.then(() => 1))
        return { artifact: text(`done ${String(runs)}`) }
      }
    })
    const runtime = createRuntime({ agent, store, logger: quiet().logger })
    t.teardown(() => runtime.close())
    const message = (id: string) => ({
      message: { messageId: id, role: 'ROLE_USER' as const, parts: [text(id)] },
      configuration: { returnImmediately: true }
    })
    const begun = await runtime.sendMessage(message('one'))
    const id = 'task' in begun ? begun.task.id : ''
    await server.kill()
    await t.rejects(runtime.sendMessage(message('two')), { code: 'Overloaded' })
    release()
    await server.begin()
    await back(store)
    t.match(await reaches(runtime, id, 'completed'), { artifacts: [{ parts: [{ text: 'done 1' }] }] })
  }
)

await t.test('a store that is closed while the database is away ends', async t => {
  const { store } = await opened(t)
  await store.commit(opening('t'))
  await server.kill()
  await t.rejects(store.commit(ending('t')), AWAY)
  await store.close()
  await server.begin()
})

/**
 * Conditions of a plan that no index answers: they would be looked at for every row that the index gives. Few rows have
 * another shard, owner or form, there are few counts of transitions, and sums are of one page.
 */
function filtersIn(plan: string): string[] {
  const isSmall =
    /shard = ANY|sum\(count|state = ANY|earlier|sums\.total|epoch|is_new|before|\(task IS NOT NULL\)$|^\(context\)::text|\|\| ''|ended_at_ms IS NOT NULL|SubPlan|max\(transitions_\d\.at_ms/
  return Array.from(plan.matchAll(/^ *(?:Join )?Filter: \((.*)\)$/gm), ([, filter = '']) => filter).filter(
    filter => !isSmall.test(filter)
  )
}

const withoutCasts = (sql: string) => sql.replaceAll(/[()]|::\w+/g, '')

/**
 * Conditions without one on the index's first column: the whole index is read. `first` has the first column of each
 * index. There are few counters.
 */
function wholeIndexesIn(plan: string, first: ReadonlyMap<string, string>): string[] {
  return Array.from(plan.matchAll(/(?:using|Scan on) (\w+)\b[^\n]*\n *Index Cond: \((.*)\)$/gm)).flatMap(
    ([line, index = '', condition = '']) =>
      index === 'counters_pkey' || withoutCasts(condition).includes(first.get(index) ?? index) ? [] : [line]
  )
}

const ROWS = [1000, 21_000] as const
const FILLED = `
  INSERT INTO contexts SELECT n, n % 48, '', 'anna', 'c' || n, 2, n, 1, 1, '{}', 0 FROM generate_series(${ROWS.join()}) AS s (n);
  INSERT INTO tasks SELECT n, n, n % 48, '', 'anna', 'c' || n, 't' || n, 'TASK_STATE_COMPLETED', '2026-01-02T03:04:05.' || n, 3, 3, 1, 500, NULL, n, 0 FROM generate_series(${ROWS.join()}) AS s (n);
  INSERT INTO snapshots SELECT n, n, '{}', 0 FROM generate_series(${ROWS.join()}) AS s (n);
  INSERT INTO messages SELECT n, 1, n, '{}', 0 FROM generate_series(${ROWS.join()}) AS s (n);
  INSERT INTO events SELECT n, g, g = 3, '{}', 0 FROM generate_series(${ROWS.join()}) AS s (n), generate_series(1, 3) AS g (g);`
const TABLES = ['contexts', 'tasks', 'snapshots', 'messages', 'events']

const emptied = (to: number) =>
  TABLES.map(
    table =>
      `DELETE FROM ${table} WHERE ${table === 'contexts' || table === 'messages' ? 'context' : 'task'} BETWEEN ${ROWS[0]} AND ${to}`
  )

/** What the planner may know of the tables. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  nothing: [],
  'that they are large': [FILLED, `VACUUM ANALYZE ${TABLES.join()}`],
  // The last rows hold the pages of the others, and few dead rows do not make VACUUM give the pages back.
  'that they were emptied': [
    FILLED,
    ...emptied(ROWS[1] - 10),
    `VACUUM ${TABLES.join()}`,
    ...emptied(ROWS[1]),
    `VACUUM ANALYZE ${TABLES.join()}`
  ]
}

for (const [known, changes] of Object.entries(KNOWN))
  await t.test(`every statement finds its rows by an index that fits, when the planner knows ${known}`, async t => {
    const { store, schema } = await opened(t)
    for (const change of changes) await onDatabase(url.replace(/$/, `?options=-csearch_path%3D${schema}`), change)
    await store.commit(opening('t'))
    await store.commit(ending('t'))
    const pool = poolOf(url, 1)
    t.teardown(() => pool.end())
    const client = await pool.connect()
    const notices: string[] = []
    client.on('notice' as 'error', notice => void notices.push(String(notice?.message)))
    const session = await Session.open({ connect: async () => client }, schema)
    t.teardown(() => session.close())
    const indexes = await session.once(
      `SELECT indexrelid::regclass, pg_get_indexdef(indexrelid, 1, false) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = '${schema}'::regnamespace`
    )
    const first = new Map(indexes.map(([name, column]) => [String(name), withoutCasts(String(column))]))
    const check = (name: string, plan: string) => {
      t.notMatch(
        plan,
        /Seq Scan on (?:contexts|tasks|snapshots|events|messages|journal|sends|webhooks)/,
        `${name}\n${plan}`
      )
      t.same([...filtersIn(plan), ...wholeIndexesIn(plan, first)], [], `${name}\n${plan}`)
    }
    const statements = [...Object.values(READS), READ_CONTEXTS]
    for (const { name, text } of statements) await session.run(`PREPARE ${name} AS ${text}`)
    for (const { name, text } of statements) {
      const parameters = Math.max(0, ...Array.from(text.matchAll(/\$(\d+)/g), ([, number]) => Number(number)))
      const plan = (
        await session
          .once(`EXPLAIN (GENERIC_PLAN) ${text}`)
          .catch(() =>
            session.once(
              `EXPLAIN EXECUTE ${name}${parameters === 0 ? '' : `(${Array.from({ length: parameters }, () => 'NULL').join(', ')})`}`
            )
          )
      )
        .map(([line]) => line)
        .join('\n')
      check(name, plan)
    }
    await session.run(
      `LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on; SET client_min_messages = log`
    )
    const shards = Array.from({ length: 48 }, (_, i) => i)
    const [[context, task] = []] = await session.once(`SELECT context, task FROM tasks WHERE task_id = 't'`)
    const groups = new WriteGroups()
    groups.add('contexts', 2, Number(context), 0, '', 'anna', 'context of t', 3, 0, 1, 1, '{}', 0)
    groups.add(
      'tasks',
      false,
      Number(context),
      Number(task),
      0,
      '',
      'anna',
      'context of t',
      't',
      'TASK_STATE_COMPLETED',
      '',
      3,
      3,
      1,
      9,
      null,
      0,
      0
    )
    groups.add('changedSnapshots', Number(task), '{}', 0)
    groups.add('ended', Number(task))
    groups.add('droppedWebhooks', 1)
    const [[epoch] = []] = await session.once('SELECT epoch FROM shards WHERE shard = 0')
    await session.rows(WRITE_ROWS, groups.parameters({ shards: [0], epochs: [Number(epoch)] }, new Set([0])))
    await session.once(
      'SELECT sweep_rows($1, (SELECT array_agg(epoch ORDER BY shard) FROM shards), 0, 1, 1, 1, 10, 1000)',
      [shards]
    )
    await session.once(
      `SELECT erase_rows($1, (SELECT array_agg(epoch ORDER BY shard) FROM shards), 0, '', 'anna', 'context of t')`,
      [shards]
    )
    const plans = notices.filter(notice => notice.includes('Query Text'))
    t.ok(plans.length > 10, `${plans.length}`)
    for (const plan of plans) check('a function', plan)
  })

await t.test('errors are classified by their codes', t => {
  const coded = (code: string) => Object.assign(new Error('no'), { code })
  t.strictSame(
    ['57P01', '08006', '25006', 'TC001', 'TC002', '23505', '53100', '57014', '22021'].map(code =>
      classifyPostgresError(coded(code))
    ),
    ['away', 'away', 'away', 'fenced', 'conflict', 'conflict', 'busy', 'busy', 'other']
  )
  t.equal(
    classifyPostgresError(coded('EPIPE')),
    'other',
    'a session says of its own errors that the connection is lost'
  )
  t.equal(postgresReasonOf({}), 'no reason is known')
  t.match(toStoreError(coded('53100'), 'x'), AWAY)
  t.match(toStoreError(coded('22021'), 'x'), { name: 'StorageError', message: 'x refused a statement: no (22021).' })
  t.match(overloadedError(), AWAY)
  t.end()
})
