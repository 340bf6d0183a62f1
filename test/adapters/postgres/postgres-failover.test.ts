import '../../fixtures/stores/needs-postgres.ts'
import { spawnSync } from 'node:child_process'
import { chownSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { postgresStore, readPostgres } from '../../../adapters/postgres/postgres.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { ByteCutter } from '../../fixtures/network/cut-at-byte.ts'
import {
  onDatabase,
  postgresFolder,
  PostgresServer,
  runAsPostgres,
  spawnAsPostgres
} from '../../fixtures/stores/postgres.ts'
import { until } from '../../fixtures/runtime/runtime-helpers.ts'
import { IS_DEEP } from '../../fixtures/sample.ts'
import { ending, opening, quiet, scope, taskIds } from '../../fixtures/stores/stored-tasks.ts'
import { unusedPort } from '../../fixtures/network/unused-port.ts'

/** Failovers, restores and poolers take seconds, and other programs: they are tested whole, or not at all. */
if (!IS_DEEP) {
  t.plan(0, 'only in npm run test:deep')
  process.exit()
}

const AWAY = { name: 'A2AError', code: 'Overloaded' }

async function started(t: Test, settings: readonly string[] = []): Promise<PostgresServer> {
  const server = await PostgresServer.start(settings)
  t.teardown(() => server.stop())
  return server
}

async function opened(t: Test, url: string) {
  const { logger, said } = quiet()
  const store = await postgresStore(url, { logger, readers: 1 })
  t.teardown(() => store.close())
  return { store, said }
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

const isPrimary = async (url: string) =>
  (await onDatabase(url, 'SELECT pg_is_in_recovery() AS standby'))[0]?.standby === false

await t.test('a synchronous standby that is promoted under load has everything that was acknowledged', async t => {
  const primary = await started(t)
  const standby = await PostgresServer.backupOf(primary, { isStandby: true })
  t.teardown(() => standby.stop())
  await standby.begin()
  await until(async () => (await onDatabase(primary.url(), 'SELECT 1 FROM pg_stat_replication')).length === 1)
  const { store: early, said: warned } = await opened(t, primary.url())
  t.ok(
    warned.some(line => line.includes('the standbys of the server are asynchronous')),
    'an asynchronous standby is warned of'
  )
  await early.close()
  for (const statement of [`ALTER SYSTEM SET synchronous_standby_names = '*'`, 'SELECT pg_reload_conf()'])
    await onDatabase(primary.url(), statement)
  await until(
    async () =>
      (await onDatabase(primary.url(), `SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`)).length === 1
  )

  const proxy = await ByteCutter.to(primary.port)
  t.teardown(() => proxy.close())
  const { store, said } = await opened(t, primary.url(proxy.port))
  t.notOk(
    said.some(line => line.includes('asynchronous')),
    'a synchronous one is not'
  )
  const acknowledged = new Set<string>()
  const load = { isOver: false }
  const write = async (lane: number) => {
    for (let i = 0; !load.isOver; i += 1) {
      const taskId = `${lane}-${i}`
      const outcome = await Promise.all([store.commit(opening(taskId)), store.commit(ending(taskId))]).catch(
        (error: { code?: string }) => error.code
      )
      if (String(outcome) === 'true,true') acknowledged.add(taskId)
      else await until(() => load.isOver || store.status?.().isStopped === false)
    }
  }
  const lanes = Array.from({ length: 8 }, (_, lane) => write(lane))
  const more = async () => {
    const before = acknowledged.size
    await until(() => acknowledged.size > before + 50)
  }
  await more()
  await primary.kill()
  proxy.target = standby.port
  await until(
    () => said.some(line => line.includes('is a standby, which is read-only')),
    'a standby that is not promoted yet is refused'
  )
  await onDatabase(standby.url(), 'SELECT pg_promote()')
  await back(store)
  await more()
  load.isOver = true
  await Promise.all(lanes)
  for (const taskId of acknowledged) t.equal((await store.readTask(scope, taskId))?.generation, 3, taskId)
})

await t.test('a full tablespace refuses commits, not reads, and commits go on when there is room again', async t => {
  const room = postgresFolder()
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=48m', 'tmpfs', room])
  if (mounted.status !== 0) {
    t.comment('this user may not mount a small file system')
    return
  }
  t.teardown(() => spawnSync('umount', [room]))
  const { uid, gid } = statSync(postgresFolder())
  mkdirSync(join(room, 'space'))
  chownSync(join(room, 'space'), uid, gid)
  const server = await started(t)
  for (const statement of [
    `CREATE TABLESPACE small LOCATION '${join(room, 'space')}'`,
    'CREATE DATABASE small TABLESPACE small'
  ])
    await onDatabase(server.url(), statement)
  const url = server.url().replace(/postgres$/, 'small')
  const { store, said } = await opened(t, url)
  said.length = 0
  await store.commit(opening('t'))
  await onDatabase(url, 'CREATE TABLE filler (page text)')
  const fill = async () =>
    onDatabase(url, `INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, 500)`).then(
      () => false,
      () => true
    )
  await until(fill, 'the disk is full')
  const outcomes = await Promise.allSettled(
    Array.from({ length: 200 }, (_, i) => store.commit(opening(`more ${i}`, { text: 'y'.repeat(5000) })))
  )
  const refused = outcomes.flatMap(outcome => (outcome.status === 'rejected' ? [outcome.reason as Error] : []))
  t.ok(refused.length > 0)
  for (const error of refused) t.match(error, AWAY)
  t.equal((await store.readTask(scope, 't'))?.generation, 1)
  await onDatabase(url, 'DROP TABLE filler')
  await until(async () => store.commit(ending('t')).catch(() => false), 'there is room again')
  t.equal((await store.readTask(scope, 't'))?.generation, 3)
  t.strictSame(said, [], 'the database was never away')
})

await t.test('PgBouncer is refused in transaction mode, and serves in session mode', async t => {
  if (spawnSync('pgbouncer', ['--version']).status !== 0) {
    t.comment('no PgBouncer: apt install pgbouncer')
    return
  }
  const server = await started(t)
  const pooler = async (mode: string) => {
    const [folder, port] = [postgresFolder(), await unusedPort()]
    writeFileSync(join(folder, 'users'), '"postgres" ""\n')
    writeFileSync(
      join(folder, 'pooler.ini'),
      `[databases]\n* = host=127.0.0.1 port=${server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =\nauth_type = trust\nauth_file = ${join(folder, 'users')}\npool_mode = ${mode}\n`
    )
    const child = spawnAsPostgres('pgbouncer', [join(folder, 'pooler.ini')])
    t.teardown(() => child.kill())
    const url = server.url(port)
    await until(
      async () =>
        onDatabase(url, 'SELECT 1').then(
          () => true,
          () => false
        ),
      'PgBouncer answers'
    )
    return url
  }
  await t.rejects(postgresStore(await pooler('transaction'), { logger: quiet().logger }), {
    name: 'StorageError',
    message: /is behind a pooler that shares sessions between transactions/
  })
  const url = await pooler('session')
  const { store } = await opened(t, url)
  t.equal(await store.commit(opening('t')), true)
  await t.rejects(postgresStore(url, { logger: quiet().logger }), { message: /is in use by process/ })
  await store.close()
  const { store: again } = await opened(t, url)
  t.strictSame(await taskIds(again), ['t'])
})

await t.test('tasks go on from a dump, and from a base backup and its archived log up to a moment', async t => {
  const archive = postgresFolder()
  const server = await started(t, ['archive_mode=on', `archive_command=cp %p ${archive}/%f`])
  const { store } = await opened(t, server.url())
  await store.commit(opening('dumped'))
  const dump = join(postgresFolder(), 'agent.dump')
  runAsPostgres('pg_dump', ['--format=custom', '--schema=taskchart', `--file=${dump}`, server.url()])
  const restored = await PostgresServer.backupOf(server)
  t.teardown(() => restored.stop())
  await store.commit(opening('before'))
  const [{ moment } = { moment: '' }] = await onDatabase(server.url(), 'SELECT clock_timestamp()::text AS moment')
  await store.commit(opening('after'))
  const [{ segment } = { segment: '' }] = await onDatabase(
    server.url(),
    'SELECT pg_walfile_name(pg_switch_wal()) AS segment'
  )
  await until(
    async () =>
      (await onDatabase(server.url(), `SELECT 1 FROM pg_stat_archiver WHERE last_archived_wal >= '${String(segment)}'`))
        .length === 1
  )

  writeFileSync(join(restored.folder, 'data/recovery.signal'), '')
  await restored.begin([
    `restore_command=cp ${archive}/%f %p`,
    `recovery_target_time=${String(moment)}`,
    'recovery_target_action=promote'
  ])
  await until(async () => isPrimary(restored.url()))
  const { store: recovered } = await opened(t, restored.url())
  t.strictSame(await taskIds(recovered), ['before', 'dumped'])
  t.equal(await recovered.commit(ending('before')), true)

  await onDatabase(server.url(), 'CREATE DATABASE restored')
  const url = server.url().replace(/postgres$/, 'restored')
  runAsPostgres('pg_restore', [`--dbname=${url}`, dump])
  const { store: fromDump } = await opened(t, url)
  t.equal(await fromDump.commit(ending('dumped')), true)
  t.equal(await fromDump.commit(opening('new')), true)
  const reader = await readPostgres(url)
  t.strictSame(await taskIds(reader), ['dumped', 'new'])
  await reader.close()
})
