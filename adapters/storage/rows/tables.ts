import type { Database } from '../driver.ts'
import { Table } from './table.ts'

/** A tenant and principal. Its number, like those of contexts and tasks, is this file's own. */
export type ScopeRow = { scope: number; tenant: string; principal: string }

export type ContextRow = {
  context: number
  scope: number
  contextId: string
  /** Its commit number. */
  commits: number
  /** When its newest commit was decided. */
  atMs: number
  /** How many tasks it has, ended ones too. */
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
  /** The time of its newest status, and its generation; '' and 0 before the first. */
  time: string
  statusAt: number
  generation: number
  /** How many messages met it. */
  messages: number
  wakeAtMs: number | null
  /** When the commit was decided that ended it; null while it lives. */
  endedAtMs: number | null
}

/** The snapshot of a task that has not ended; apart, so that ended tasks, which are most, take little room. */
export type SnapshotRow = { task: number; snapshot: string }

/** `isTerm` is 1 for a status with metadata; `body` is the TaskEvent as JSON. */
export type EventRow = { task: number; generation: number; isTerm: number; body: string }

/** `number` counts a context's messages; `task` is the one that it met, if any; `body` is the MessageRow as JSON. */
export type MessageTableRow = { context: number; number: number; task: number | null; body: string }

/** `entry` gives the order of first writing; `body` is the value as JSON. */
export type JournalTableRow = { entry: number; task: number; key: string; body: string }

/** A send outlives its context, so it has that by its id. `body` is the SendRow as JSON. */
export type SendTableRow = { scope: number; key: string; contextId: string; expiresAtMs: number; body: string }

/** `place` gives the order of first writing, `isOpen` is 1 while it is told; `body` is the WebhookRow as JSON. */
export type WebhookTableRow = { place: number; task: number; id: string; isOpen: number; body: string }

/** The tables of a file, each of its rows with a checksum. */
export function tablesOf(database: Database) {
  return {
    scopes: new Table<ScopeRow>(database, 'scopes', ['scope', 'tenant', 'principal']),
    contexts: new Table<ContextRow>(database, 'contexts', ['context', 'scope', 'contextId', 'commits', 'atMs', 'tasks', 'messages', 'snapshot']),
    tasks: new Table<StoredTaskRow>(database, 'tasks', [
      'task', 'scope', 'context', 'contextId', 'taskId', 'state', 'time', 'statusAt', 'generation', 'messages', 'wakeAtMs', 'endedAtMs'
    ]),
    snapshots: new Table<SnapshotRow>(database, 'snapshots', ['task', 'snapshot']),
    events: new Table<EventRow>(database, 'events', ['task', 'generation', 'isTerm', 'body']),
    messages: new Table<MessageTableRow>(database, 'messages', ['context', 'number', 'task', 'body']),
    journal: new Table<JournalTableRow>(database, 'journal', ['entry', 'task', 'key', 'body']),
    sends: new Table<SendTableRow>(database, 'sends', ['scope', 'key', 'contextId', 'expiresAtMs', 'body']),
    webhooks: new Table<WebhookTableRow>(database, 'webhooks', ['place', 'task', 'id', 'isOpen', 'body'])
  }
}

export type Tables = ReturnType<typeof tablesOf>

/**
 * Version 1. Keys are texts of `storedText`; lists are read by their indexes alone, a state at a time, and each index has
 * only the rows that it is for.
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

const WEBHOOKS = '(place INTEGER PRIMARY KEY, task INTEGER NOT NULL, id TEXT NOT NULL, isOpen INTEGER NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL)'

/** Version 2: webhooks. */
export const VERSION_2 = `
  CREATE TABLE webhooks ${WEBHOOKS};
  CREATE UNIQUE INDEX webhooks_by_id ON webhooks (task, id);
  CREATE INDEX webhooks_open ON webhooks (place) WHERE isOpen = 1;
`

/** What a reader of a file of version 1 has in place of what came after, for itself alone. */
export const AS_VERSION_2 = `CREATE TEMP TABLE webhooks ${WEBHOOKS}`
