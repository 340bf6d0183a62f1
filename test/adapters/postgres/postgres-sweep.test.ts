import '../../fixtures/stores/needs-postgres.ts'
import t, { type Test } from 'tap'
import { postgresStore } from '../../../adapters/postgres/postgres.ts'
import { poolOf } from '../../../adapters/postgres/session/pool.ts'
import type { ShardOwner } from '../../../adapters/postgres/session/owner.ts'
import { Session } from '../../../adapters/postgres/session/session.ts'
import { Sweeper } from '../../../adapters/postgres/write/writer.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { onDatabase, PostgresServer } from '../../fixtures/stores/postgres.ts'
import { until } from '../../fixtures/runtime/runtime-helpers.ts'
import { contextKey, ending, opening, quiet, scope } from '../../fixtures/stores/stored-tasks.ts'

const server = await PostgresServer.start()
t.teardown(() => server.stop())
const url = server.url()
let schemas = 0

/** A store, and a session of another program in its schema. */
async function opened(t: Test) {
  const schema = `w${(schemas += 1)}`
  const store = await postgresStore(url, { readers: 2, logger: quiet().logger, schema })
  t.teardown(() => store.close())
  const pool = poolOf(url, 1)
  t.teardown(() => pool.end())
  const other = await Session.open(pool, schema)
  t.teardown(() => other.close())
  return {
    store,
    schema,
    other,
    sql: (statements: string) => onDatabase(url, `SET search_path = ${schema}; ${statements}`)
  }
}

/** Resolves with the process of a session that waits for a lock in a statement with these words. */
async function waitingIn(words: string): Promise<number> {
  let pid: unknown
  await until(async () => {
    const [found] = await onDatabase(
      url,
      `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${words}%'`
    )
    return (pid = found?.pid) !== undefined
  }, words)
  return Number(pid)
}

const OLD = { endedBeforeMs: 1000, idleBeforeMs: -Infinity, sendsBeforeMs: -Infinity }
const AWAY = { name: 'A2AError', code: 'Overloaded' }

async function put(
  store: Store,
  taskId: string,
  contextId: string,
  expected: number,
  atMs: number
): Promise<boolean[]> {
  return [
    await store.commit(opening(taskId, { contextId, expected, atMs })),
    await store.commit(ending(taskId, { contextId, expected: expected + 1, atMs }))
  ]
}

await t.test(
  'a sweep beside commits to the same contexts, and an erasure: everything is done, and nothing is left over',
  async t => {
    const { store, sql } = await opened(t)
    const contexts = Array.from({ length: 6 }, (_, i) => `c${i}`)
    await Promise.all(
      contexts.map(async contextId => {
        for (let i = 0; i < 20; i += 1) await put(store, `old ${contextId} ${i}`, contextId, 2 * i, i)
      })
    )
    const [erased = '', ...others] = contexts
    const load = { isOver: false }
    const sweeping = (async () => {
      let swept = 0
      for (let more = 1; more > 0 || !load.isOver; swept += more) more = await store.sweep(OLD, 3)
      return swept
    })()
    const erasing = store.erase(contextKey(erased))
    const written = await Promise.all(
      others.map(async contextId => {
        const results: boolean[] = []
        for (let i = 0; i < 15; i += 1)
          results.push(...(await put(store, `new ${contextId} ${i}`, contextId, 40 + 2 * i, 5000)))
        return results
      })
    )
    load.isOver = true
    t.equal(await erasing, true)
    t.strictSame([...new Set(written.flat())], [true])
    const swept = await sweeping
    t.ok(swept >= 100 && swept <= 120, 'the erasure may take some')
    const [left] =
      await sql(`SELECT (SELECT count(*)::int FROM tasks) AS tasks, (SELECT sum(count)::int FROM counters) AS counted, (SELECT sum(tasks)::int FROM contexts) AS of_contexts,
    (SELECT count(*)::int FROM events) AS events, (SELECT count(*)::int FROM messages) AS messages, (SELECT count(*)::int FROM contexts) AS contexts`)
    t.strictSame(left, { tasks: 75, counted: 75, of_contexts: 75, events: 225, messages: 75, contexts: 5 })
    t.equal((await store.listTasks(scope, { limit: 1 })).total, 75)
  }
)

await t.test(
  'no other process gets a shard during a sweep, and a process that lost its shards removes nothing',
  async t => {
    const { store, other, sql } = await opened(t)
    await put(store, 'one', 'c', 0, 0)
    await other.run('BEGIN')
    await other.once('SELECT 1 FROM contexts FOR UPDATE')
    const swept = store.sweep(OLD, 10)
    await waitingIn('sweep_rows')
    const taken = sql('UPDATE shards SET epoch = epoch + 1')
    await waitingIn('UPDATE shards')
    await other.run('COMMIT')
    t.equal(await swept, 1)
    await taken
    await sql(
      `INSERT INTO tasks SELECT context, 1, shard, tenant, principal, context_id, 'two', 'TASK_STATE_COMPLETED', '', 0, 0, 0, 0, NULL, 0, 0 FROM contexts`
    )
    await t.rejects(store.sweep(OLD, 10), AWAY)
    t.strictSame(await sql('SELECT task_id FROM tasks'), [{ task_id: 'two' }])
  }
)

await t.test('a webhook is not written again after a sweep has removed its task', async t => {
  const { store, other, sql } = await opened(t)
  const hook = { taskId: 't', id: 'w', webhook: { url: 'https://hooks.example/' }, version: '1.0' }
  const note = { scope, taskId: 't', id: 'w', progress: { told: 3, tries: 1 } }
  await put(store, 't', 'c', 0, 0)
  await store.writeWebhook(scope, hook, 9)
  const locked = async () => {
    await other.run('BEGIN')
    await other.once('SELECT 1 FROM tasks FOR UPDATE')
    const noted = store.noteWebhooks([note])
    return { noted, pid: await waitingIn('write_rows') }
  }
  const { noted: refused, pid } = await locked()
  const refusal = t.rejects(refused, AWAY, 'other errors refuse the call')
  await sql(`SELECT pg_cancel_backend(${pid})`)
  await refusal
  await other.run('ROLLBACK')
  t.strictSame(await store.noteWebhooks([note]), [true])
  const { noted } = await locked()
  await other.run('DELETE FROM webhooks; DELETE FROM tasks; COMMIT')
  t.strictSame(await noted, [false])
  t.strictSame(await sql('SELECT key FROM webhooks'), [])
})

await t.test('counters of a caller without tasks stay while a writer uses one, and go with the next task', async t => {
  const { store, other, sql } = await opened(t)
  await put(store, 'one', 'c', 0, 0)
  await other.run('BEGIN')
  await other.once('SELECT 1 FROM counters FOR UPDATE')
  t.equal(await store.sweep(OLD, 10), 1)
  await other.run('COMMIT')
  t.strictSame(await sql('SELECT sum(count)::int AS sum FROM counters'), [{ sum: 0 }])
  t.equal((await store.listTasks(scope, { limit: 1 })).total, 0)
  await put(store, 'two', 'c', 2, 0)
  t.equal(await store.sweep(OLD, 10), 1)
  t.strictSame(await sql('SELECT * FROM counters'), [])
})

await t.test('a sweep rests after each piece while commits wait, for as long as its rows say', async t => {
  const rests: number[] = []
  const writer = { waiting: 0, swept: () => {} }
  // So many rows that the rest is not over, however slow this machine is.
  const rows = { length: 2000 * 3600, map: () => [] }
  const sweeper = new Sweeper(
    {} as ShardOwner,
    { read: async () => rows as never },
    writer,
    async ms => void rests.push(ms)
  )
  await sweeper.sweep(OLD, 10)
  await sweeper.sweep(OLD, 10)
  t.strictSame(rests, [], 'without commits it goes on at once')
  writer.waiting = 1
  await sweeper.sweep(OLD, 10)
  t.equal(rests.length, 1)
  t.ok((rests[0] ?? 0) > 0 && (rests[0] ?? 0) <= 3_600_000)
})

await t.test(
  'every growing table has autovacuum after 2 % and 2,000 changed rows, at five times its usual speed',
  async t => {
    const { sql } = await opened(t)
    const tables = await sql(
      `SELECT relname, reloptions FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' ORDER BY relname`
    )
    const growing = tables.filter(({ relname }) => !['meta', 'nodes', 'shards'].includes(String(relname)))
    t.equal(growing.length, 10)
    for (const { relname, reloptions } of growing) {
      t.match(
        new Set(reloptions as string[]),
        new Set([
          'autovacuum_vacuum_scale_factor=0.02',
          'autovacuum_vacuum_threshold=2000',
          'autovacuum_vacuum_cost_limit=1000'
        ]),
        String(relname)
      )
    }
  }
)
