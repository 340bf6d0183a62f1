import { StorageError } from '../../rows/storage-error.ts'
import { MIGRATIONS } from '../schema/migrate.ts'
import type { Session } from './session.ts'

/** The names of our tables, sequences and functions. */
const OURS = MIGRATIONS.flatMap(sql =>
  [...sql.matchAll(/CREATE (?:TABLE|SEQUENCE|FUNCTION) (\w+)/g)].map(([, name]) => name)
)

/** The statements that give the role what it lacks in the schema $1, with objects of the names $2. */
const LACKING = `
  WITH space AS (SELECT oid AS space, nspname, EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND relname = 'meta') AS is_made FROM pg_namespace n WHERE nspname = $1::name)
  SELECT format('SET default_transaction_read_only = off; ALTER ROLE %I IN DATABASE %I SET default_transaction_read_only = off', current_user, current_database())
    WHERE current_setting('default_transaction_read_only')::bool
  UNION ALL
  SELECT format('CREATE SCHEMA %I AUTHORIZATION %I', $1::name, current_user) WHERE NOT EXISTS (SELECT FROM space) AND NOT has_database_privilege(current_database(), 'CREATE')
  UNION ALL
  SELECT format('GRANT %s ON SCHEMA %I TO %I', string_agg(kind, ', ' ORDER BY kind DESC), nspname, current_user)
    FROM space, unnest(CASE WHEN is_made THEN '{USAGE}' ELSE '{USAGE,CREATE}' END::text[]) kind WHERE NOT has_schema_privilege(space, kind) GROUP BY nspname
  UNION ALL
  SELECT format('GRANT %s ON TABLE %I.%I TO %I', string_agg(kind, ', ' ORDER BY kind), nspname, relname, current_user)
    FROM space JOIN pg_class c ON relnamespace = space AND relkind = 'r' AND relname = ANY ($2), unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) kind
    WHERE is_made AND NOT has_table_privilege(c.oid, kind) GROUP BY nspname, relname
  UNION ALL
  SELECT format('GRANT USAGE ON SEQUENCE %I.%I TO %I', nspname, relname, current_user)
    FROM space JOIN pg_class c ON relnamespace = space AND relname = ANY ($2)
    WHERE is_made AND CASE relkind WHEN 'S' THEN NOT has_sequence_privilege(c.oid, 'USAGE') END
  UNION ALL
  SELECT format('GRANT EXECUTE ON FUNCTION %I.%I(%s) TO %I', nspname, proname, pg_get_function_identity_arguments(f.oid), current_user)
    FROM space JOIN pg_proc f ON pronamespace = space AND proname = ANY ($2) WHERE is_made AND NOT has_function_privilege(f.oid, 'EXECUTE')`

/** Rejects with StorageError if the role lacks a right that taskchart needs. It names the statements that mend all that is lacking. */
export async function checkRights(session: Session, place: string, schema: string): Promise<void> {
  const lacking = (await session.once(LACKING, [schema, OURS])).flat()
  if (lacking.length > 0)
    throw new StorageError(
      `${place} gives its role too few rights. As an administrator, run in this database: ${lacking.map(statement => `${statement};`).join(' ')}`
    )
}
