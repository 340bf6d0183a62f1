/**
 * Version 1: the tables. Names of tenants, principals, contexts and tasks are texts of `storedText`, sorted by their bytes. Contexts, tasks, sends and
 * webhooks have the shard of their context, so that processes can share a database shard by shard. Counts of transitions have the
 * first shard of the process that counted as their writer. `sum` is a checksum over the cells that
 * the writer sets. Updated rows have room in their page.
 *
 * Each condition fits one index only, so that the planner has no choice that is right for a small table alone: to read a whole index by a
 * condition on a later column is wrong once the table grows, and the plan stays until the next ANALYZE. So no two indexes of a table have the
 * same column; where two have to, one of them has it in an expression: `+ 0`, `|| ''`.
 */
export const TABLES = `
  CREATE TABLE meta (name text PRIMARY KEY, value text NOT NULL);

  CREATE TABLE shards (shard int PRIMARY KEY, epoch bigint NOT NULL, holder text) WITH (fillfactor = 50);

  CREATE TABLE nodes (address text PRIMARY KEY, pid int NOT NULL, beats bigint NOT NULL, takes boolean NOT NULL, holder text NOT NULL) WITH (fillfactor = 50);

  CREATE SEQUENCE numbers INCREMENT 1048576;
  CREATE SEQUENCE places;
  CREATE SEQUENCE entries CACHE 64;

  CREATE TABLE contexts (
    context bigint PRIMARY KEY, shard int NOT NULL, tenant text COLLATE "C" NOT NULL, principal text COLLATE "C" NOT NULL,
    context_id text COLLATE "C" NOT NULL, commits bigint NOT NULL, at_ms float8 NOT NULL, tasks int NOT NULL, messages int NOT NULL,
    snapshot text NOT NULL, sum bigint NOT NULL
  ) WITH (fillfactor = 80);
  CREATE UNIQUE INDEX contexts_by_name ON contexts (tenant, principal, context_id);
  CREATE INDEX contexts_without_tasks ON contexts (at_ms) WHERE tasks = 0;

  CREATE TABLE tasks (
    context bigint NOT NULL, task bigint PRIMARY KEY, shard int NOT NULL, tenant text COLLATE "C" NOT NULL, principal text COLLATE "C" NOT NULL,
    context_id text COLLATE "C" NOT NULL, task_id text COLLATE "C" NOT NULL, state text COLLATE "C" NOT NULL, time text COLLATE "C" NOT NULL,
    status_at int NOT NULL, generation int NOT NULL, messages int NOT NULL, bytes bigint NOT NULL, wake_at_ms float8, ended_at_ms float8,
    sum bigint NOT NULL
  ) WITH (fillfactor = 80);
  CREATE UNIQUE INDEX tasks_by_id ON tasks (task_id);
  CREATE INDEX tasks_of_scope ON tasks (tenant, principal, state, time, (task_id || ''));
  CREATE INDEX tasks_of_context ON tasks (context, (state || ''), (time || ''), (task_id || ''));
  CREATE INDEX tasks_by_creation ON tasks ((context + 0), (task + 0));
  CREATE INDEX tasks_ended ON tasks (ended_at_ms, task) WHERE ended_at_ms IS NOT NULL;
  CREATE INDEX tasks_waking ON tasks (wake_at_ms, task_id) WHERE wake_at_ms IS NOT NULL;

  CREATE TABLE snapshots (task bigint PRIMARY KEY, context bigint NOT NULL, snapshot text NOT NULL, sum bigint NOT NULL) WITH (fillfactor = 50);
  CREATE INDEX snapshots_of_context ON snapshots (context);

  CREATE TABLE events (
    task bigint NOT NULL, generation int NOT NULL, is_term boolean NOT NULL, body text NOT NULL, sum bigint NOT NULL, PRIMARY KEY (task, generation)
  );
  CREATE INDEX events_with_terms ON events ((task + 0), generation) WHERE is_term;

  CREATE TABLE messages (
    context bigint NOT NULL, number int NOT NULL, task bigint, body text NOT NULL, sum bigint NOT NULL, PRIMARY KEY (context, number)
  );
  CREATE INDEX messages_of_task ON messages (task, number) WHERE task IS NOT NULL;

  CREATE TABLE journal (
    task bigint NOT NULL, key text COLLATE "C" NOT NULL, entry bigint NOT NULL, name text NOT NULL, body text NOT NULL, sum bigint NOT NULL,
    PRIMARY KEY (task, key)
  );

  CREATE TABLE sends (
    tenant text COLLATE "C" NOT NULL, principal text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, context_id text COLLATE "C" NOT NULL,
    shard int NOT NULL, expires_at_ms float8 NOT NULL, body text NOT NULL, sum bigint NOT NULL, PRIMARY KEY (tenant, principal, key)
  );
  CREATE INDEX sends_of_context ON sends ((tenant || ''), (principal || ''), (context_id || ''));
  CREATE INDEX sends_by_end ON sends (expires_at_ms);

  CREATE TABLE webhooks (
    place bigint PRIMARY KEY, shard int NOT NULL, context bigint NOT NULL, task bigint NOT NULL, key text COLLATE "C" NOT NULL, is_open boolean NOT NULL,
    body text NOT NULL, sum bigint NOT NULL
  );
  CREATE UNIQUE INDEX webhooks_by_id ON webhooks (task, key);
  CREATE INDEX webhooks_open ON webhooks (place) WHERE is_open;

  CREATE TABLE counters (
    tenant text COLLATE "C" NOT NULL, principal text COLLATE "C" NOT NULL, state text COLLATE "C" NOT NULL, slot int NOT NULL, count bigint NOT NULL,
    PRIMARY KEY (tenant, principal, state, slot)
  ) WITH (fillfactor = 50);
  CREATE INDEX counters_of_principal ON counters ((principal || ''));

  CREATE TABLE transitions (
    chart text COLLATE "C" NOT NULL, previous text COLLATE "C" NOT NULL, taken text COLLATE "C" NOT NULL, writer int NOT NULL, count bigint NOT NULL,
    timed bigint NOT NULL, ms bigint NOT NULL, at_ms float8 NOT NULL, sum bigint NOT NULL, PRIMARY KEY (chart, previous, taken, writer)
  ) WITH (fillfactor = 50);
`

const GROWING = [
  'contexts',
  'tasks',
  'snapshots',
  'events',
  'messages',
  'journal',
  'sends',
  'webhooks',
  'counters',
  'transitions'
] as const

/**
 * Autovacuum after few changed rows, and five times as fast as by default: dead rows should stay below 2 % of a table, 2,000, and those of
 * one `autovacuum_naptime` of the server and one run. The default waits for a fifth of a table.
 */
export const VACUUM = GROWING.map(
  table =>
    `ALTER TABLE ${table} SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_limit = 1000);`
).join('\n')

/** The number of slots in which the tasks of a scope and state are counted: so many processes count without waiting for each other. Sweeps have one more. */
export const SLOTS = 16
