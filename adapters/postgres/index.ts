/** taskchart/postgres: the store in a PostgreSQL database. */
export { postgresStore } from './postgres.ts'

export type { PostgresPool } from './session/pool.ts'
