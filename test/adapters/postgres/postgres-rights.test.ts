import '../../fixtures/stores/needs-postgres.ts'
import t, { type Test } from 'tap'
import { postgresStore } from '../../../adapters/postgres/postgres.ts'
import { runCommand } from '../../fixtures/cli/run-command.ts'
import { rejection } from '../../fixtures/runtime/runtime-helpers.ts'
import { onDatabase, PostgresServer } from '../../fixtures/stores/postgres.ts'
import { ending, opening, quiet } from '../../fixtures/stores/stored-tasks.ts'

const server = await PostgresServer.start()
t.teardown(() => server.stop())
let roles = 0

/** A database with a role that has no rights in it. */
async function guarded() {
  const name = `agent ${(roles += 1)}`
  const administrator = server.url().replace(/postgres$/, encodeURIComponent(name))
  for (const statement of [`CREATE DATABASE "${name}"`, `CREATE ROLE "${name}" LOGIN`])
    await onDatabase(server.url(), statement)
  const url = administrator.replace('//postgres:s3cr3t@', `//${encodeURIComponent(name)}@`)
  const opened = () => postgresStore(url, { schema: 'Tasks', logger: quiet().logger })
  const lacking = async () =>
    /^postgres:.* gives its role too few rights\. As an administrator, run in this database: (.*)$/.exec(
      (await rejection(opened())).message
    )?.[1] ?? ''
  return { name, url, opened, lacking, run: (sql: string) => onDatabase(administrator, sql) }
}

/**
 * The rights that are lacking are told all at once, and after the statements that are told the store can do everything.
 */
async function mends(
  t: Test,
  { opened, lacking, run }: Awaited<ReturnType<typeof guarded>>,
  told: string
): Promise<void> {
  t.equal(await lacking(), told)
  // Each in a transaction of its own, as psql does it.
  await run(told.replaceAll('; ', '; COMMIT; '))
  const store = await opened()
  await store.commit(opening('t'))
  await store.commit(ending('t'))
  t.ok(await store.sweep({ endedBeforeMs: Infinity, idleBeforeMs: Infinity, sendsBeforeMs: Infinity }, 10))
  await store.close()
}

await t.test(
  'what the role of a PostgreSQL database lacks is told at the start, with the statements that mend it',
  async t => {
    await t.test('a schema, and the right to make one', async t => {
      const database = await guarded()
      await mends(t, database, `CREATE SCHEMA "Tasks" AUTHORIZATION "${database.name}";`)
    })

    await t.test('the rights on an empty schema of another owner, and on a read-only database', async t => {
      const database = await guarded()
      await database.run('CREATE SCHEMA "Tasks"')
      await database.run(`ALTER DATABASE "${database.name}" SET default_transaction_read_only = on`)
      await mends(
        t,
        database,
        `SET default_transaction_read_only = off; ALTER ROLE "${database.name}" IN DATABASE "${database.name}" SET default_transaction_read_only = off; GRANT USAGE, CREATE ON SCHEMA "Tasks" TO "${database.name}";`
      )
    })

    await t.test('the right to write one table, to take numbers and to call a function', async t => {
      const database = await guarded()
      await database.run(`GRANT CREATE ON DATABASE "${database.name}" TO "${database.name}"`)
      await (await database.opened()).close()
      for (const statement of [
        'ALTER SCHEMA "Tasks" OWNER TO postgres',
        `REASSIGN OWNED BY "${database.name}" TO postgres`
      ])
        await database.run(statement)
      const all = await database.lacking()
      t.match(
        all,
        /^GRANT USAGE ON SCHEMA "Tasks" TO "agent 3"; GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE "Tasks"\.\w+ TO "agent 3";/
      )
      for (const name of ['meta', 'shards', 'tasks', 'numbers']) t.match(all, new RegExp(`"Tasks"\\.${name} `))
      await database.run(all)
      await database.run(
        `REVOKE DELETE, INSERT ON "Tasks".sends FROM "${database.name}"; REVOKE ALL ON SEQUENCE "Tasks".numbers FROM "${database.name}"; REVOKE ALL ON FUNCTION "Tasks".drop_counters FROM PUBLIC`
      )
      await mends(
        t,
        database,
        `GRANT DELETE, INSERT ON TABLE "Tasks".sends TO "agent 3"; GRANT USAGE ON SEQUENCE "Tasks".numbers TO "agent 3"; GRANT EXECUTE ON FUNCTION "Tasks".drop_counters(tenants_ text[], principals_ text[]) TO "agent 3";`
      )
    })
  }
)

await t.test('taskchart doctor says what the role lacks, with the statements that mend it', async t => {
  const { name, url, run } = await guarded()
  const doctor = () => runCommand(['doctor', '--db', url])
  const wrong = (statement: string) =>
    new RegExp(
      `\nWRONG {2}The database cannot be used: postgres:[^\n]* gives its role too few rights\\.\n {7}As an administrator, run in this database: ${statement};\n$`
    )
  t.match(await doctor(), { code: 1, stdout: wrong(`CREATE SCHEMA taskchart AUTHORIZATION "${name}"`) })
  await run(`CREATE SCHEMA taskchart AUTHORIZATION "${name}"`)
  t.match(
    await doctor(),
    {
      code: 1,
      stdout:
        /\nWRONG {2}The database cannot be used: [^\n]* has no tables of taskchart in the schema taskchart\.\n {7}Start the database/
    },
    'doctor creates nothing'
  )
  await (await postgresStore(url, { logger: quiet().logger })).close()
  t.match(await doctor(), { code: 0, stdout: /\nok {5}[^\n]* can be read: 0 tasks\n$/ })
  await run('ALTER TABLE taskchart.tasks OWNER TO postgres')
  t.match(await doctor(), {
    code: 1,
    stdout: wrong(`GRANT DELETE, INSERT, SELECT, UPDATE ON TABLE taskchart\\.tasks TO "${name}"`)
  })
})
