import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { DatabaseTaskStore } from '@a2a-js/sdk/server/database'
import { Kysely, PostgresDialect } from 'kysely'

/**
 * The official SDK's own store in a PostgreSQL database, whose tables its command creates, as its documentation says.
 */
export async function sdkDatabase(url: string): Promise<DatabaseTaskStore> {
  // npm runs the benchmark in the folder of the clone.
  const command = join(process.cwd(), 'node_modules/.bin/a2a-db')
  execFileSync(process.execPath, [command, 'upgrade', '--url', url, '--store', 'tasks'], {
    stdio: ['ignore', 'ignore', 'inherit']
  })
  const { Pool } = createRequire(import.meta.url)('pg') as { readonly Pool: new (options: object) => never }
  return new DatabaseTaskStore(
    new Kysely({ dialect: new PostgresDialect({ pool: new Pool({ connectionString: url, max: 10 }) }) })
  )
}
