/**
 * The functions of version 1. Each statement looks rows up by one index from one list of keys. Every write first
 * checks, in its own transaction, that the caller owns all of its shards; a write of another owner fails with TC001. A
 * row that is not as the writer knew it fails with TC002. A failed call writes nothing.
 */
const OWNED = `
CREATE FUNCTION check_owner(shards_ int[], epochs_ bigint[]) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  owned int;
BEGIN
  SELECT count(*) INTO owned FROM unnest(shards_, epochs_) AS mine (shard, epoch) JOIN shards USING (shard) WHERE shards.epoch = mine.epoch;
  IF owned < cardinality(shards_) THEN RAISE EXCEPTION 'another process owns the shard' USING ERRCODE = 'TC001'; END IF;
END $body$;
`

/** The parameters of `write_rows`, in order: groups of columns with their types. `undefined` groups are null. */
export const WRITE_GROUPS = {
  owned: ['int4', 'int8'],
  /**
   * before, context, shard, tenant, principal, context_id, commits, at_ms, added tasks, messages, snapshot, sum.
   * `before` is 0 for a new one.
   */
  contexts: ['int8', 'int8', 'int4', 'text', 'text', 'text', 'int8', 'float8', 'int4', 'int4', 'text', 'int8'],
  /**
   * is_new, context, task, shard, tenant, principal, context_id, task_id, state, time, status_at, generation, messages,
   * bytes, wake_at_ms, ended_at_ms, sum.
   */
  tasks: [
    'bool',
    'int8',
    'int8',
    'int4',
    'text',
    'text',
    'text',
    'text',
    'text',
    'text',
    'int4',
    'int4',
    'int4',
    'int8',
    'float8',
    'float8',
    'int8'
  ],
  /** task, context, snapshot, sum of new ones; task, snapshot, sum of changed ones. */
  newSnapshots: ['int8', 'int8', 'text', 'int8'],
  changedSnapshots: ['int8', 'text', 'int8'],
  /** Tasks that have ended. */
  ended: ['int8'],
  /** task, generation, is_term, body, sum. */
  events: ['int8', 'int4', 'bool', 'text', 'int8'],
  /** context, number, task, body, sum, generation. */
  messages: ['int8', 'int4', 'int8', 'text', 'int8', 'int4'],
  /** task, key, name, body, sum. */
  journal: ['int8', 'text', 'text', 'text', 'int8'],
  /** tenant, principal, key, context_id, shard, expires_at_ms, body, sum. */
  sends: ['text', 'text', 'text', 'text', 'int4', 'float8', 'text', 'int8'],
  /** shard, context, task, key, is_open, body, sum. */
  webhooks: ['int4', 'int8', 'int8', 'text', 'bool', 'text', 'int8'],
  /** Places of webhooks that are deleted. */
  droppedWebhooks: ['int8'],
  /** tenant, principal, state, slot, difference. */
  counters: ['text', 'text', 'text', 'int4', 'int8']
} as const

/**
 * Without `enable_indexscan` the planner finds rows by a bitmap, which needs a condition: it would read the whole index
 * of a table that it thinks empty.
 */
const WRITE = writeRows('context, number, task, body, sum', 'm1 int8[], m2 int4[], m3 int8[], m4 text[], m5 int8[]')

/** `write_rows` with these columns of messages, and the parameters for them. */
function writeRows(columns: string, parameters: string): string {
  return `
CREATE FUNCTION write_rows(
  shards_ int4[], epochs_ int8[],
  c1 int8[], c2 int8[], c3 int4[], c4 text[], c5 text[], c6 text[], c7 int8[], c8 float8[], c9 int4[], c10 int4[], c11 text[], c12 int8[],
  t1 bool[], t2 int8[], t3 int8[], t4 int4[], t5 text[], t6 text[], t7 text[], t8 text[], t9 text[], t10 text[], t11 int4[], t12 int4[], t13 int4[],
  t14 int8[], t15 float8[], t16 float8[], t17 int8[],
  n1 int8[], n2 int8[], n3 text[], n4 int8[], s1 int8[], s2 text[], s3 int8[], d1 int8[],
  e1 int8[], e2 int4[], e3 bool[], e4 text[], e5 int8[],
  ${parameters},
  j1 int8[], j2 text[], j3 text[], j4 text[], j5 int8[],
  k1 text[], k2 text[], k3 text[], k4 text[], k5 int4[], k6 float8[], k7 text[], k8 int8[],
  w1 int4[], w2 int8[], w3 int8[], w4 text[], w5 bool[], w6 text[], w7 int8[], x1 int8[],
  q1 text[], q2 text[], q3 text[], q4 int4[], q5 int8[]
) RETURNS void LANGUAGE plpgsql SET enable_indexscan = off AS $body$
DECLARE
  added int := 0;
  changed int := 0;
BEGIN
  PERFORM check_owner(shards_, epochs_);
  IF c1 IS NOT NULL THEN
    INSERT INTO contexts (context, shard, tenant, principal, context_id, commits, at_ms, tasks, messages, snapshot, sum)
      SELECT c.context, c.shard, c.tenant, c.principal, c.context_id, c.commits, c.at_ms, c.added, c.messages, c.snapshot, c.sum
      FROM unnest(c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12)
        AS c (before, context, shard, tenant, principal, context_id, commits, at_ms, added, messages, snapshot, sum) WHERE c.before = 0;
    GET DIAGNOSTICS added = ROW_COUNT;
    IF added < cardinality(c1) THEN
      UPDATE contexts SET commits = c.commits, at_ms = c.at_ms, tasks = contexts.tasks + c.added, messages = c.messages, snapshot = c.snapshot, sum = c.sum
        FROM unnest(c1, c2, c7, c8, c9, c10, c11, c12) AS c (before, context, commits, at_ms, added, messages, snapshot, sum)
        WHERE c.before > 0 AND contexts.context = c.context AND contexts.commits = c.before;
      GET DIAGNOSTICS changed = ROW_COUNT;
    END IF;
    IF added + changed < cardinality(c1) THEN RAISE EXCEPTION 'a context was changed' USING ERRCODE = 'TC002'; END IF;
  END IF;
  IF t1 IS NOT NULL THEN
    INSERT INTO tasks (context, task, shard, tenant, principal, context_id, task_id, state, time, status_at, generation, messages, bytes, wake_at_ms, ended_at_ms, sum)
      SELECT t.context, t.task, t.shard, t.tenant, t.principal, t.context_id, t.task_id, t.state, t.time, t.status_at, t.generation, t.messages, t.bytes, t.wake_at_ms,
        t.ended_at_ms, t.sum
      FROM unnest(t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13, t14, t15, t16, t17)
        AS t (is_new, context, task, shard, tenant, principal, context_id, task_id, state, time, status_at, generation, messages, bytes, wake_at_ms, ended_at_ms, sum)
      WHERE t.is_new;
    GET DIAGNOSTICS added = ROW_COUNT;
    changed := 0;
    IF added < cardinality(t1) THEN
      UPDATE tasks SET state = t.state, time = t.time, status_at = t.status_at, generation = t.generation, messages = t.messages, bytes = t.bytes,
          wake_at_ms = t.wake_at_ms, ended_at_ms = t.ended_at_ms, sum = t.sum
        FROM unnest(t1, t3, t9, t10, t11, t12, t13, t14, t15, t16, t17)
          AS t (is_new, task, state, time, status_at, generation, messages, bytes, wake_at_ms, ended_at_ms, sum)
        WHERE NOT t.is_new AND tasks.task = t.task;
      GET DIAGNOSTICS changed = ROW_COUNT;
    END IF;
    IF added + changed < cardinality(t1) THEN RAISE EXCEPTION 'a task was changed' USING ERRCODE = 'TC002'; END IF;
  END IF;
  IF n1 IS NOT NULL THEN INSERT INTO snapshots (task, context, snapshot, sum) SELECT * FROM unnest(n1, n2, n3, n4); END IF;
  IF s1 IS NOT NULL THEN
    UPDATE snapshots SET snapshot = s.snapshot, sum = s.sum FROM unnest(s1, s2, s3) AS s (task, snapshot, sum) WHERE snapshots.task = s.task;
  END IF;
  IF d1 IS NOT NULL THEN
    DELETE FROM snapshots WHERE task = ANY (d1);
    DELETE FROM journal WHERE task = ANY (d1);
  END IF;
  IF e1 IS NOT NULL THEN INSERT INTO events (task, generation, is_term, body, sum) SELECT * FROM unnest(e1, e2, e3, e4, e5); END IF;
  IF m1 IS NOT NULL THEN INSERT INTO messages (${columns}) SELECT * FROM unnest(${parameters.replaceAll(/ \w+\[\]/g, '')}); END IF;
  IF j1 IS NOT NULL THEN
    INSERT INTO journal (task, key, entry, name, body, sum)
      SELECT j.task, j.key, nextval('entries'), j.name, j.body, j.sum FROM unnest(j1, j2, j3, j4, j5) WITH ORDINALITY AS j (task, key, name, body, sum, place) ORDER BY j.place
      ON CONFLICT (task, key) DO UPDATE SET body = excluded.body, sum = excluded.sum;
  END IF;
  IF k1 IS NOT NULL THEN
    INSERT INTO sends (tenant, principal, key, context_id, shard, expires_at_ms, body, sum) SELECT * FROM unnest(k1, k2, k3, k4, k5, k6, k7, k8)
      ON CONFLICT (tenant, principal, key) DO UPDATE SET context_id = excluded.context_id, shard = excluded.shard, expires_at_ms = excluded.expires_at_ms,
        body = excluded.body, sum = excluded.sum;
  END IF;
  IF x1 IS NOT NULL THEN DELETE FROM webhooks WHERE place = ANY (x1); END IF;
  IF w1 IS NOT NULL THEN
    PERFORM FROM tasks WHERE task = ANY (w3) FOR KEY SHARE;
    GET DIAGNOSTICS changed = ROW_COUNT;
    IF changed < (SELECT count(DISTINCT task) FROM unnest(w3) AS w (task)) THEN RAISE EXCEPTION 'a task was removed' USING ERRCODE = 'TC002'; END IF;
    INSERT INTO webhooks (place, shard, context, task, key, is_open, body, sum)
      SELECT nextval('places'), w.shard, w.context, w.task, w.key, w.is_open, w.body, w.sum
      FROM unnest(w1, w2, w3, w4, w5, w6, w7) WITH ORDINALITY AS w (shard, context, task, key, is_open, body, sum, place) ORDER BY w.place
      ON CONFLICT (task, key) DO UPDATE SET is_open = excluded.is_open, body = excluded.body, sum = excluded.sum;
  END IF;
  IF q1 IS NOT NULL THEN
    INSERT INTO counters (tenant, principal, state, slot, count) SELECT * FROM unnest(q1, q2, q3, q4, q5)
      ON CONFLICT (tenant, principal, state, slot) DO UPDATE SET count = counters.count + excluded.count;
  END IF;
END $body$;
`
}

/** The types of the columns of counts of transitions, in the order of `TRANSITION_COLUMNS`. */
export const TRANSITION_TYPES = ['text', 'text', 'text', 'int4', 'int8', 'int8', 'int8', 'float8', 'int8'] as const

const COUNT = `
CREATE FUNCTION count_transitions(
  shards_ int4[], epochs_ int8[], h1 text[], h2 text[], h3 text[], h4 int4[], h5 int8[], h6 int8[], h7 int8[], h8 float8[], h9 int8[]
) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM check_owner(shards_, epochs_);
  INSERT INTO transitions (chart, previous, taken, writer, count, timed, ms, at_ms, sum) SELECT * FROM unnest(h1, h2, h3, h4, h5, h6, h7, h8, h9)
    ON CONFLICT (chart, previous, taken, writer) DO UPDATE SET count = excluded.count, timed = excluded.timed, ms = excluded.ms, at_ms = excluded.at_ms, sum = excluded.sum;
END $body$;
`

/**
 * A sweep runs beside the writer, and waits for none of its locks but those of contexts, which both take in ascending
 * order. It takes tasks, then contexts; what a writer has locked is not due. Its own slot of the counters keeps writers
 * from waiting for it. While it runs, no other process gets a shard.
 */
const REMOVE = `
CREATE FUNCTION drop_tasks(tasks_ bigint[], contexts_ bigint[], slot_ int) RETURNS void LANGUAGE plpgsql SET enable_indexscan = off AS $body$
BEGIN
  UPDATE contexts SET tasks = contexts.tasks - g.count FROM (SELECT context, count(*) AS count FROM unnest(contexts_) AS c (context) GROUP BY context) AS g WHERE contexts.context = g.context;
  DELETE FROM events WHERE task = ANY (tasks_);
  DELETE FROM messages WHERE task IS NOT NULL AND task = ANY (tasks_);
  DELETE FROM snapshots WHERE task = ANY (tasks_);
  DELETE FROM journal WHERE task = ANY (tasks_);
  DELETE FROM webhooks WHERE task = ANY (tasks_);
  WITH gone AS (DELETE FROM tasks WHERE task = ANY (tasks_) RETURNING tenant, principal, state)
    INSERT INTO counters (tenant, principal, state, slot, count) SELECT tenant, principal, state, slot_, -count(*) FROM gone GROUP BY tenant, principal, state ORDER BY tenant, principal, state
      ON CONFLICT (tenant, principal, state, slot) DO UPDATE SET count = counters.count + excluded.count;
END $body$;

CREATE FUNCTION drop_counters(tenants_ text[], principals_ text[]) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  idle record;
  locked int;
BEGIN
  FOR idle IN SELECT DISTINCT * FROM unnest(tenants_, principals_) AS n (tenant, principal)
    WHERE (SELECT true FROM tasks WHERE tasks.tenant = n.tenant AND tasks.principal = n.principal LIMIT 1) IS NULL
  LOOP
    -- A writer that has just counted a new task has one of the rows, or waits for it.
    PERFORM FROM counters WHERE tenant = idle.tenant AND principal = idle.principal FOR UPDATE SKIP LOCKED;
    GET DIAGNOSTICS locked = ROW_COUNT;
    DELETE FROM counters WHERE tenant = idle.tenant AND principal = idle.principal
      AND locked = (SELECT count(*) FROM counters AS c WHERE c.tenant = idle.tenant AND c.principal = idle.principal)
      AND NOT EXISTS (SELECT FROM tasks WHERE tasks.tenant = idle.tenant AND tasks.principal = idle.principal);
  END LOOP;
END $body$;

CREATE FUNCTION sweep_rows(shards_ int[], epochs_ bigint[], slot_ int, ended_ float8, idle_ float8, sends_ float8, limit_ int, bytes_ bigint)
RETURNS TABLE (tenant_ text, principal_ text, context_id_ text, task_id_ text) LANGUAGE plpgsql AS $body$
DECLARE
  contexts_ bigint[];
  tasks_ bigint[];
  tenants_ text[];
  principals_ text[];
  removed int := 0;
BEGIN
  PERFORM FROM shards WHERE shard = ANY (shards_) FOR SHARE;
  PERFORM check_owner(shards_, epochs_);
  DELETE FROM transitions WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM transitions WHERE chart IN (SELECT chart FROM transitions GROUP BY chart HAVING max(at_ms) < ended_) FOR UPDATE SKIP LOCKED
  ));
  SELECT array_agg(context), array_agg(task), array_agg(tenant), array_agg(principal) INTO contexts_, tasks_, tenants_, principals_ FROM (
    SELECT context, task, tenant, principal, sum(bytes) OVER (ORDER BY ended_at_ms, task ROWS UNBOUNDED PRECEDING) - bytes AS earlier FROM (
      SELECT * FROM tasks WHERE ended_at_ms IS NOT NULL AND ended_at_ms < ended_ AND shard = ANY (shards_) ORDER BY ended_at_ms, task LIMIT limit_ FOR UPDATE SKIP LOCKED
    ) AS due
  ) AS portion WHERE earlier < bytes_;
  IF tasks_ IS NOT NULL THEN
    removed := cardinality(tasks_);
    PERFORM FROM contexts WHERE context = ANY (contexts_) ORDER BY context FOR UPDATE;
    RETURN QUERY SELECT tenant, principal, context_id, task_id FROM tasks WHERE task = ANY (tasks_);
    PERFORM drop_tasks(tasks_, contexts_, slot_);
    PERFORM drop_counters(tenants_, principals_);
  END IF;
  SELECT array_agg(context) INTO contexts_ FROM (
    SELECT context, sum(octet_length(snapshot) + 1024) OVER (ORDER BY at_ms, context ROWS UNBOUNDED PRECEDING) AS earlier FROM (
      SELECT context, at_ms, snapshot FROM contexts WHERE tasks = 0 AND at_ms < idle_ AND shard = ANY (shards_) ORDER BY at_ms LIMIT greatest(limit_ - removed, 0) FOR UPDATE SKIP LOCKED
    ) AS due
  ) AS portion WHERE earlier <= bytes_ + 1024;
  IF contexts_ IS NOT NULL THEN
    removed := removed + cardinality(contexts_);
    DELETE FROM messages WHERE context = ANY (contexts_);
    RETURN QUERY DELETE FROM contexts WHERE context = ANY (contexts_) RETURNING tenant, principal, context_id, NULL::text;
  END IF;
  RETURN QUERY DELETE FROM sends WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM sends WHERE expires_at_ms < sends_ AND shard = ANY (shards_) ORDER BY expires_at_ms LIMIT greatest(limit_ - removed, 0) FOR UPDATE SKIP LOCKED
  )) RETURNING NULL::text, NULL::text, NULL::text, NULL::text;
END $body$;

CREATE FUNCTION erase_rows(shards_ int[], epochs_ bigint[], slot_ int, tenant_ text, principal_ text, context_id_ text) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
  contexts_ bigint[];
  removed bigint := 0;
  more bigint;
  tasks_ bigint[];
BEGIN
  PERFORM check_owner(shards_, epochs_);
  IF context_id_ IS NULL THEN
    SELECT array_agg(context) INTO contexts_ FROM contexts WHERE tenant = tenant_ AND principal = principal_;
  ELSE
    SELECT array_agg(context) INTO contexts_ FROM contexts WHERE tenant = tenant_ AND principal = principal_ AND context_id = context_id_;
  END IF;
  IF contexts_ IS NOT NULL THEN
    SELECT array_agg(task) INTO tasks_ FROM (SELECT task FROM tasks WHERE context = ANY (contexts_) FOR UPDATE) AS found;
    PERFORM FROM contexts WHERE context = ANY (contexts_) ORDER BY context FOR UPDATE;
    IF tasks_ IS NOT NULL THEN PERFORM drop_tasks(tasks_, '{}', slot_); END IF;
    DELETE FROM messages WHERE context = ANY (contexts_);
    DELETE FROM contexts WHERE context = ANY (contexts_);
    removed := cardinality(contexts_);
  END IF;
  IF context_id_ IS NULL THEN
    DELETE FROM sends WHERE tenant = tenant_ AND principal = principal_;
  ELSE
    DELETE FROM sends WHERE (tenant || '') = tenant_ AND (principal || '') = principal_ AND (context_id || '') = context_id_;
  END IF;
  GET DIAGNOSTICS more = ROW_COUNT;
  PERFORM drop_counters(ARRAY[tenant_], ARRAY[principal_]);
  RETURN removed + more;
END $body$;
`

/** The function of version 2: messages have generations. */
export const WRITE_GENERATIONS = `DROP FUNCTION write_rows;${writeRows(
  'context, number, task, body, sum, generation',
  'm1 int8[], m2 int4[], m3 int8[], m4 text[], m5 int8[], m6 int4[]'
)}`

/** The SQL of all functions of version 1. */
export const FUNCTIONS = `${OWNED}${WRITE}${COUNT}${REMOVE}`
