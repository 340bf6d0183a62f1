import { isTerminal, TASK_STATES, type TaskState } from '../../../machines/protocol/states.ts'
import { VERSION_CHARACTERS } from '../../../runtime/store/rows.ts'
import { countBefore } from '../../rows/commit-rows.ts'
import { CONTEXT_COLUMNS, TASK_COLUMNS, TASK_WIDTH } from '../write/row-shapes.ts'
import { TRANSITION_COLUMNS } from '../write/transition-rows.ts'
import { WEBHOOK_COLUMNS } from '../write/webhook-rows.ts'

/** All states of tasks. */
export const STATES = Object.keys(TASK_STATES)

const OPEN = STATES.filter(state => !isTerminal(state as TaskState))
  .map(state => `'${state}'`)
  .join(', ')

const prepared = (name: string, text: string) => ({ name: `taskchart_${name}`, text })

const NO_TASK = Array.from({ length: TASK_WIDTH }, () => 'NULL').join(', ')

/** The columns of an index of tasks. */
interface Columns {
  readonly state: string
  readonly time: string
}

const OF_SCOPE: Columns = { state: 'state', time: 'time' }
const OF_CONTEXT: Columns = { state: "(state || '')", time: "(time || '')" }

/**
 * A page of a scope or a context. The index has its tasks by state, status time and id; each state gives as many as the
 * page has.
 */
const page = (name: string, of: string, { state, time }: Columns) =>
  prepared(
    name,
    `
  SELECT found.* FROM unnest($1::text[]) AS s (state) CROSS JOIN LATERAL (
    SELECT ${TASK_COLUMNS} FROM tasks WHERE ${of} AND ${state} = s.state AND ${time} >= $2 AND (${time}, (task_id || '')) < ($3, $4) ORDER BY ${time} DESC, (task_id || '') DESC LIMIT $5::int
  ) AS found ORDER BY time DESC, task_id DESC LIMIT $5::int`
  )

const count = (name: string, of: string, next: number, { state, time }: Columns) =>
  prepared(
    name,
    `
  SELECT sum(found.count) FROM unnest($1::text[]) AS s (state) CROSS JOIN LATERAL (SELECT count(*) FROM tasks WHERE ${of} AND ${state} = s.state AND ${time} >= $${next}) AS found`
  )

const counted = (name: string, of: string) =>
  prepared(name, `SELECT sum(count) FROM counters WHERE ${of} AND state IN (${OPEN})`)

/**
 * The statements of all reads. Each finds its rows by an index, however large the tables are. A join of tables is a
 * LATERAL with OFFSET 0 or ORDER BY, in which the planner cannot change the order: for tables that it thinks empty it
 * would read a whole index instead.
 */
export const READS = {
  task: prepared('task', `SELECT ${TASK_COLUMNS} FROM tasks WHERE task_id = $1`),
  context: prepared(
    'context',
    `SELECT ${CONTEXT_COLUMNS} FROM contexts WHERE tenant = $1 AND principal = $2 AND context_id = $3`
  ),
  commits: prepared('commits', 'SELECT commits FROM contexts WHERE context = $1'),
  /**
   * A context, then its live tasks, in one snapshot of the database: a column for the context's commits, and one for
   * the bytes of a snapshot.
   */
  live: prepared(
    'live',
    `
    SELECT ${CONTEXT_COLUMNS}, ${NO_TASK}, NULL::bigint FROM contexts WHERE tenant = $1 AND principal = $2 AND context_id = $3
    UNION ALL SELECT * FROM (
      SELECT NULL::bigint, NULL::int, NULL, NULL, NULL, NULL::bigint, NULL::float8, NULL::int, NULL::int, NULL, NULL::bigint, ${TASK_COLUMNS}, octet_length(snapshots.snapshot)
      FROM contexts CROSS JOIN LATERAL (SELECT * FROM snapshots WHERE snapshots.context = contexts.context OFFSET 0) AS snapshots
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task = snapshots.task OFFSET 0) AS tasks
      WHERE contexts.tenant = $1 AND contexts.principal = $2 AND contexts.context_id = $3 ORDER BY tasks.task
    ) AS live`
  ),
  wakes: prepared(
    'wakes',
    `SELECT ${TASK_COLUMNS} FROM tasks WHERE wake_at_ms IS NOT NULL AND (wake_at_ms, task_id) > ($1::float8, $2) ORDER BY wake_at_ms, task_id LIMIT $3::int`
  ),
  eventsBefore: prepared(
    'events_before',
    countBefore(
      'SELECT generation, octet_length(body) AS bytes FROM events WHERE task = $1 AND generation > $2 ORDER BY generation LIMIT $3::int',
      'generation',
      '$4::float8'
    )
  ),
  events: prepared(
    'events',
    'SELECT task, generation, is_term, body, sum FROM events WHERE task = $1 AND generation > $2 ORDER BY generation LIMIT $3::int'
  ),
  numberedMessages: prepared(
    'numbered_messages',
    'SELECT count(*) FROM messages WHERE generation IS NOT NULL AND task = $1 AND generation > $2 AND generation <= $3'
  ),
  taskMessagesBefore: prepared(
    'task_messages_before',
    countBefore(
      'SELECT number, octet_length(body) AS bytes FROM messages WHERE task IS NOT NULL AND task = $1 ORDER BY number OFFSET $2::int LIMIT $3::int',
      'number',
      '$4::float8'
    )
  ),
  taskMessages: prepared(
    'task_messages',
    'SELECT task, context, number, body, sum FROM messages WHERE task IS NOT NULL AND task = $1 ORDER BY number OFFSET $2::int LIMIT $3::int'
  ),
  firstMessage: prepared(
    'first_message',
    'SELECT min(number) FROM messages WHERE task IS NOT NULL AND task = (SELECT task FROM tasks WHERE task_id = $2 AND context::text = $1)'
  ),
  messagesBefore: prepared(
    'messages_before',
    countBefore(
      'SELECT number, octet_length(body) AS bytes FROM messages WHERE context = $1 AND number < $2::bigint ORDER BY number DESC LIMIT $3::int',
      'number DESC',
      '$4::float8'
    )
  ),
  messages: prepared(
    'messages',
    'SELECT task, context, number, body, sum FROM messages WHERE context = $1 AND number < $2::bigint ORDER BY number DESC LIMIT $3::int'
  ),
  transitions: prepared('transitions', `SELECT ${TRANSITION_COLUMNS} FROM transitions WHERE chart = $1`),
  journal: prepared('journal', 'SELECT task, key, name, body, sum FROM journal WHERE task = $1 ORDER BY entry'),
  sizes: prepared(
    'sizes',
    `
    SELECT task_id, bytes, (SELECT coalesce(sum(octet_length(body)), 0) FROM journal WHERE journal.task = tasks.task) FROM tasks
    WHERE task_id = ANY ($3::text[]) AND (tenant || '') = $1 AND (principal || '') = $2 ORDER BY time DESC, task_id DESC`
  ),
  newestSizes: prepared(
    'newest_sizes',
    `
    SELECT task_id, bytes, (SELECT coalesce(sum(octet_length(body)), 0) FROM journal WHERE journal.task = tasks.task) FROM tasks WHERE (context + 0) = $1::bigint ORDER BY (task + 0) DESC LIMIT $2::int`
  ),
  pageOfScope: page('page_of_scope', 'tenant = $6 AND principal = $7', OF_SCOPE),
  pageOfContext: page('page_of_context', 'context = $6::bigint', OF_CONTEXT),
  countOfScope: count('count_of_scope', 'tenant = $2 AND principal = $3', 4, OF_SCOPE),
  countOfContext: count('count_of_context', 'context = $2::bigint', 3, OF_CONTEXT),
  total: prepared(
    'total',
    'SELECT coalesce(sum(count), 0) FROM counters WHERE tenant = $1 AND principal = $2 AND state = ANY ($3::text[])'
  ),
  states: prepared(
    'states',
    `SELECT state, sum(count) FROM counters WHERE state IN (${OPEN}) GROUP BY state HAVING sum(count) <> 0`
  ),
  versions: prepared(
    'versions',
    `SELECT task, substr(snapshot, 1, ${VERSION_CHARACTERS}) FROM snapshots WHERE task > $1::bigint ORDER BY task LIMIT $2::int`
  ),
  openTasks: prepared(
    'open_tasks',
    `
    SELECT ${TASK_COLUMNS} FROM (SELECT task FROM snapshots WHERE task > $1::bigint ORDER BY task LIMIT $2::int) AS live
      CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task = live.task OFFSET 0) AS tasks ORDER BY live.task`
  ),
  contextsOf: prepared('contexts_of', `SELECT ${CONTEXT_COLUMNS} FROM contexts WHERE context = ANY ($1::bigint[])`),
  openOfAll: counted('open_of_all', 'true'),
  openOfTenant: counted('open_of_tenant', 'tenant = $1'),
  openOfPrincipal: counted('open_of_principal', `(principal || '') = $1`),
  openOfScope: counted('open_of_scope', 'tenant = $1 AND principal = $2'),
  send: prepared(
    'send',
    'SELECT tenant, principal, key, context_id, shard, expires_at_ms, body, sum FROM sends WHERE tenant = $1 AND principal = $2 AND key = $3'
  ),
  webhooks: prepared(
    'webhooks',
    `SELECT * FROM (SELECT ${WEBHOOK_COLUMNS} FROM webhooks WHERE task = $1 OFFSET 0) AS found ORDER BY place`
  ),
  openWebhooks: prepared(
    'open_webhooks',
    `
    SELECT ${WEBHOOK_COLUMNS}, ${TASK_COLUMNS} FROM (SELECT * FROM webhooks WHERE is_open AND place > $1 ORDER BY place LIMIT $2::int) AS webhooks
    LEFT JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task = webhooks.task OFFSET 0) AS tasks ON true ORDER BY place`
  ),
  /** The events of tasks up to the generations of their rows. */
  eventsOf: prepared(
    'events_of',
    `
    SELECT e.task, e.generation, e.is_term, e.body, e.sum FROM unnest($1::bigint[], $2::int[]) AS t (task, generation) CROSS JOIN LATERAL (
      SELECT * FROM events WHERE events.task = t.task AND events.generation <= t.generation ORDER BY events.generation) AS e`
  ),
  /** Only the statuses with metadata, and the newest. */
  statusesOf: prepared(
    'statuses_of',
    `
    SELECT e.task, e.generation, e.is_term, e.body, e.sum FROM unnest($1::bigint[], $2::int[]) AS t (task, generation) CROSS JOIN LATERAL (
      SELECT * FROM (
        SELECT * FROM events WHERE (events.task + 0) = t.task AND events.is_term AND events.generation < t.generation
        UNION ALL SELECT * FROM events WHERE events.task = t.task AND events.generation = t.generation
      ) AS found ORDER BY found.generation) AS e`
  ),
  messagesOf: prepared(
    'messages_of',
    `
    SELECT m.task, m.context, m.number, m.body, m.sum FROM unnest($1::bigint[], $2::int[]) AS t (task, most) CROSS JOIN LATERAL (
      SELECT * FROM messages WHERE messages.task IS NOT NULL AND messages.task = t.task ORDER BY messages.number LIMIT t.most) AS m`
  ),
  snapshotsOf: prepared('snapshots_of', 'SELECT task, snapshot, sum FROM snapshots WHERE task = ANY ($1::bigint[])'),
  /** Finds every scope by one step in the index of contexts. */
  scopes: prepared(
    'scopes',
    `
    WITH RECURSIVE scopes (tenant, principal) AS (
      (SELECT tenant, principal FROM contexts ORDER BY tenant, principal LIMIT 1)
      UNION ALL SELECT next.* FROM scopes CROSS JOIN LATERAL (
        SELECT contexts.tenant, contexts.principal FROM contexts WHERE (contexts.tenant, contexts.principal) > (scopes.tenant, scopes.principal)
        ORDER BY contexts.tenant, contexts.principal LIMIT 1) AS next
    ) SELECT tenant, principal FROM scopes`
  )
} as const
