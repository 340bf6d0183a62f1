import { DamagedRow, checksumOf } from '../rows/damage.ts'
import type { Database, Statement, Value } from './driver.ts'

type Cells = Readonly<Record<string, Value>>

/**
 * A table whose rows have a checksum over all cells in the column `sum`, written with every row and verified on every
 * read. A row that differs from what was written throws {@link DamagedRow} and is never returned.
 */
class Table<Row extends { readonly [Column in keyof Row]: Value }> {
  readonly #database: Database
  readonly #name: string
  readonly #columns: readonly (keyof Row & string)[]
  readonly #unsummed: readonly (keyof Row & string)[]
  readonly #insert: Statement

  /** `unsummed` are columns that the checksum leaves out, and reads too. */
  constructor(
    database: Database,
    name: string,
    columns: readonly (keyof Row & string)[],
    unsummed: readonly (keyof Row & string)[] = []
  ) {
    this.#database = database
    this.#name = name
    this.#columns = columns
    this.#unsummed = unsummed
    const all = [...columns, ...unsummed]
    this.#insert = database.prepare(
      `INSERT INTO ${name} (${all.join(', ')}, sum) VALUES (${all.map(() => '?').join(', ')}, ?)`
    )
  }

  /** Adds a row with a new key. */
  insert(row: Row): void {
    this.insertCells(row, false)
  }

  /** Adds a row from cells, which may have more columns. A damaged one is written as such. */
  insertCells(row: Cells, isDamaged: boolean): void {
    const cells = this.#columns.map(column => row[column] as Value)
    const others = this.#unsummed.map(column => row[column] ?? null)
    this.#insert.run(...cells, ...others, checksumOf(cells) + Number(isDamaged))
  }

  /** Whether a row has the checksum of its cells. */
  isIntact(row: Cells): boolean {
    return row.sum === checksumOf(this.#columns.map(column => row[column] as Value))
  }

  /** Prepares an update of `columns`, and of the sum, in the row with the cells of `key`. */
  updating(columns: readonly (keyof Row & string)[], key: readonly (keyof Row & string)[]): (row: Row) => void {
    const changes = columns.map(column => `${column} = ?`)
    const statement = this.#database.prepare(
      `UPDATE ${this.#name} SET ${changes.join(', ')}, sum = ? WHERE ${key.map(column => `${column} = ?`).join(' AND ')}`
    )
    return row =>
      void statement.run(
        ...columns.map(column => row[column]),
        checksumOf(this.#cellsOf(row)),
        ...key.map(column => row[column])
      )
  }

  /**
   * Prepares a read of the rows with the given cells in the columns `by`; `more` is SQL that follows, such as an order.
   */
  reading(by: readonly (keyof Row & string)[], more = ''): Reading<Row> {
    const condition = by.map(column => `${column} = ?`).join(' AND ')
    const statement = this.#database.prepare(
      `SELECT ${this.#columns.join(', ')}, sum FROM ${this.#name} WHERE ${condition} ${more}`
    )
    return {
      one: (...values) => {
        const row = this.#safely(() => statement.get(...values))
        return row && this.#verified(row)
      },
      all: (...values) => this.#safely(() => statement.all(...values)).map(row => this.#verified(row))
    }
  }

  #cellsOf(row: Row): Value[] {
    return this.#columns.map(column => row[column])
  }

  /**
   * Also detects a damaged index that refers to a wrong row: SQLite takes the key from the index, and the sum covers
   * the row's own.
   */
  #verified(cells: Cells): Row {
    if (!this.isIntact(cells)) throw new DamagedRow(this.#name)
    return cells as unknown as Row
  }

  /** A cell may be so damaged that the driver cannot convert it. */
  #safely<T>(read: () => T): T {
    try {
      return read()
    } catch (error) {
      /* c8 ignore next -- only with node:sqlite, which Node 20 does not have */
      if (error instanceof RangeError) throw new DamagedRow(this.#name, { cause: error })
      throw error
    }
  }
}

/** A prepared read. Both methods throw DamagedRow for a damaged row. */
export interface Reading<Row> {
  /** The first row, if there is one. */
  one(...values: Value[]): Row | undefined
  all(...values: Value[]): Row[]
}

/** A tenant and principal. Numbers of scopes, contexts and tasks are local to this file. */
export type ScopeRow = { scope: number; tenant: string; principal: string }

export type ContextRow = {
  context: number
  scope: number
  contextId: string
  /** The number of its commits. */
  commits: number
  /** The time of its newest commit. */
  atMs: number
  /** The number of its tasks, ended ones included. */
  tasks: number
  /** The number of its newest message. */
  messages: number
  snapshot: string
}

export type StoredTaskRow = {
  task: number
  scope: number
  context: number
  contextId: string
  taskId: string
  state: string
  /** The time of its newest status, and the status's generation; '' and 0 before the first. */
  time: string
  statusAt: number
  generation: number
  /** The number of its messages. */
  messages: number
  wakeAtMs: number | null
  /** The time of the commit that ended it; null while it is live. */
  endedAtMs: number | null
}

/** The snapshot of a live task, in its own table, so that ended tasks, which are most, take little space. */
export type SnapshotRow = { task: number; snapshot: string }

/** `isTerm` is 1 for a status with metadata; `body` is the TaskEvent as JSON. */
export type EventRow = { task: number; generation: number; isTerm: number; body: string }

/**
 * `number` counts a context's messages; `task` is the one that received it, if any; `body` is the MessageRow as JSON.
 * `generation` is that of a numbered message, else null, for counts.
 */
type MessageTableRow = {
  context: number
  number: number
  task: number | null
  body: string
  generation: number | null
}

/** `entry` is the order of first writing; `body` is the value as JSON. */
export type JournalTableRow = { entry: number; task: number; key: string; body: string }

/** Refers to its context by id, since it outlives it. `body` is the SendRow as JSON. */
type SendTableRow = { scope: number; key: string; contextId: string; expiresAtMs: number; body: string }

/** `place` is the order of first writing, `isOpen` is 1 until its delivery ends; `body` is the WebhookRow as JSON. */
export type WebhookTableRow = { place: number; task: number; id: string; isOpen: number; body: string }

/** Names are texts of `storedText`. `writer` is 0, or that of the database from which the row was copied. */
export type TransitionRow = {
  chart: string
  previous: string
  taken: string
  writer: number
  count: number
  timed: number
  ms: number
  atMs: number
}

/** The tables of a file, whose rows have checksums. */
export function tablesOf(database: Database) {
  return {
    scopes: new Table<ScopeRow>(database, 'scopes', ['scope', 'tenant', 'principal']),
    contexts: new Table<ContextRow>(database, 'contexts', [
      'context',
      'scope',
      'contextId',
      'commits',
      'atMs',
      'tasks',
      'messages',
      'snapshot'
    ]),
    tasks: new Table<StoredTaskRow>(database, 'tasks', [
      'task',
      'scope',
      'context',
      'contextId',
      'taskId',
      'state',
      'time',
      'statusAt',
      'generation',
      'messages',
      'wakeAtMs',
      'endedAtMs'
    ]),
    snapshots: new Table<SnapshotRow>(database, 'snapshots', ['task', 'snapshot']),
    events: new Table<EventRow>(database, 'events', ['task', 'generation', 'isTerm', 'body']),
    messages: new Table<MessageTableRow>(database, 'messages', ['context', 'number', 'task', 'body'], ['generation']),
    journal: new Table<JournalTableRow>(database, 'journal', ['entry', 'task', 'key', 'body']),
    sends: new Table<SendTableRow>(database, 'sends', ['scope', 'key', 'contextId', 'expiresAtMs', 'body']),
    webhooks: new Table<WebhookTableRow>(database, 'webhooks', ['place', 'task', 'id', 'isOpen', 'body']),
    transitions: new Table<TransitionRow>(database, 'transitions', [
      'chart',
      'previous',
      'taken',
      'writer',
      'count',
      'timed',
      'ms',
      'atMs'
    ])
  }
}

export type Tables = ReturnType<typeof tablesOf>

/**
 * Version 1. Keys are texts of `storedText`. Lists are read from indexes only, one state at a time; partial indexes
 * contain only the rows that they serve.
 */
export const VERSION_1 = `
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

  CREATE TABLE scopes (scope INTEGER PRIMARY KEY, tenant TEXT NOT NULL, principal TEXT NOT NULL, sum INTEGER NOT NULL);
  CREATE UNIQUE INDEX scopes_by_name ON scopes (tenant, principal);

  CREATE TABLE contexts (
    context INTEGER PRIMARY KEY, scope INTEGER NOT NULL, contextId TEXT NOT NULL, commits INTEGER NOT NULL, atMs INTEGER NOT NULL,
    tasks INTEGER NOT NULL, messages INTEGER NOT NULL, snapshot TEXT NOT NULL, sum INTEGER NOT NULL
  );
  CREATE UNIQUE INDEX contexts_by_name ON contexts (scope, contextId);
  CREATE INDEX contexts_without_tasks ON contexts (atMs) WHERE tasks = 0;

  CREATE TABLE tasks (
    task INTEGER PRIMARY KEY, scope INTEGER NOT NULL, context INTEGER NOT NULL, contextId TEXT NOT NULL, taskId TEXT NOT NULL,
    state TEXT NOT NULL, time TEXT NOT NULL, statusAt INTEGER NOT NULL, generation INTEGER NOT NULL, messages INTEGER NOT NULL,
    wakeAtMs INTEGER, endedAtMs INTEGER, sum INTEGER NOT NULL
  );
  CREATE UNIQUE INDEX tasks_by_id ON tasks (taskId);
  CREATE INDEX tasks_of_scope ON tasks (scope, state, time, taskId);
  CREATE INDEX tasks_of_context ON tasks (context, state, time, taskId);
  CREATE INDEX tasks_by_creation ON tasks (context);
  CREATE INDEX tasks_live ON tasks (context) WHERE endedAtMs IS NULL;
  CREATE INDEX tasks_ended ON tasks (endedAtMs) WHERE endedAtMs IS NOT NULL;
  CREATE INDEX tasks_waking ON tasks (wakeAtMs, taskId) WHERE wakeAtMs IS NOT NULL;

  CREATE TABLE snapshots (task INTEGER PRIMARY KEY, snapshot TEXT NOT NULL, sum INTEGER NOT NULL);

  CREATE TABLE events (
    task INTEGER NOT NULL, generation INTEGER NOT NULL, isTerm INTEGER NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL,
    PRIMARY KEY (task, generation)
  ) WITHOUT ROWID;
  CREATE INDEX events_with_terms ON events (task, generation) WHERE isTerm = 1;

  CREATE TABLE messages (
    context INTEGER NOT NULL, number INTEGER NOT NULL, task INTEGER, body TEXT NOT NULL, sum INTEGER NOT NULL,
    PRIMARY KEY (context, number)
  ) WITHOUT ROWID;
  CREATE INDEX messages_of_task ON messages (task, number) WHERE task IS NOT NULL;

  CREATE TABLE journal (entry INTEGER PRIMARY KEY, task INTEGER NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL);
  CREATE UNIQUE INDEX journal_by_key ON journal (task, key);

  CREATE TABLE sends (
    scope INTEGER NOT NULL, key TEXT NOT NULL, contextId TEXT NOT NULL, expiresAtMs INTEGER NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
  ) WITHOUT ROWID;
  CREATE INDEX sends_of_context ON sends (scope, contextId);
  CREATE INDEX sends_by_end ON sends (expiresAtMs);
`

const WEBHOOKS =
  '(place INTEGER PRIMARY KEY, task INTEGER NOT NULL, id TEXT NOT NULL, isOpen INTEGER NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL)'

/** Version 2: webhooks. */
export const VERSION_2 = `
  CREATE TABLE webhooks ${WEBHOOKS};
  CREATE UNIQUE INDEX webhooks_by_id ON webhooks (task, id);
  CREATE INDEX webhooks_open ON webhooks (place) WHERE isOpen = 1;
`

const TRANSITIONS = `(
  chart TEXT NOT NULL, previous TEXT NOT NULL, taken TEXT NOT NULL, writer INTEGER NOT NULL, count INTEGER NOT NULL, timed INTEGER NOT NULL, ms INTEGER NOT NULL,
  atMs INTEGER NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (chart, previous, taken, writer)
) WITHOUT ROWID`

/** Version 3: counts of transitions. */
export const VERSION_3 = `CREATE TABLE transitions ${TRANSITIONS}`

/**
 * Version 4: rows with texts of any length have row ids. A search in a table without row ids compares whole rows on its
 * way, so that it would read the long texts of others.
 */
export const VERSION_4 = withRowIds([
  [
    'events',
    'task, generation',
    'task INTEGER NOT NULL, generation INTEGER NOT NULL, isTerm INTEGER NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL',
    `
  CREATE UNIQUE INDEX events_by_generation ON events (task, generation);
  CREATE INDEX events_with_terms ON events (task, generation) WHERE isTerm = 1;`
  ],
  [
    'messages',
    'context, number',
    'context INTEGER NOT NULL, number INTEGER NOT NULL, task INTEGER, body TEXT NOT NULL, sum INTEGER NOT NULL',
    `
  CREATE UNIQUE INDEX messages_by_number ON messages (context, number);
  CREATE INDEX messages_of_task ON messages (task, number) WHERE task IS NOT NULL;`
  ],
  [
    'sends',
    'scope, key',
    'scope INTEGER NOT NULL, key TEXT NOT NULL, contextId TEXT NOT NULL, expiresAtMs INTEGER NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL',
    `
  CREATE UNIQUE INDEX sends_by_key ON sends (scope, key);
  CREATE INDEX sends_of_context ON sends (scope, contextId);
  CREATE INDEX sends_by_end ON sends (expiresAtMs);`
  ]
])

function withRowIds(
  tables: readonly (readonly [name: string, order: string, columns: string, indexes: string])[]
): string {
  return tables
    .map(
      ([name, order, columns, indexes]) => `
  ALTER TABLE ${name} RENAME TO older;
  CREATE TABLE ${name} (${columns});
  INSERT INTO ${name} SELECT * FROM older ORDER BY ${order};
  DROP TABLE older;${indexes}`
    )
    .join('\n')
}

/**
 * Version 5: messages have generations. Those of before have none, and count for nothing; the next entry of their task
 * has its next generation.
 */
export const VERSION_5 = `
  ALTER TABLE messages ADD COLUMN generation INTEGER;
  DROP INDEX messages_of_task;
  CREATE INDEX messages_of_task ON messages (task, number, generation) WHERE task IS NOT NULL;
`

/** Temporary tables that stand for those of a version while an older file is read, by version. */
export const AS_VERSION: ReadonlyMap<number, string> = new Map([
  [2, `CREATE TEMP TABLE webhooks ${WEBHOOKS}`],
  [3, `CREATE TEMP TABLE transitions ${TRANSITIONS}`],
  [
    5,
    // The trigger lets the statement that inserts be prepared.
    `CREATE TEMP VIEW messages AS SELECT *, NULL AS generation FROM main.messages;
  CREATE TEMP TRIGGER messages_unchanged INSTEAD OF INSERT ON messages BEGIN SELECT 1; END`
  ]
])
