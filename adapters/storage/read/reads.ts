import { isTerminal, TASK_STATES, type TaskState } from '../../../machines/protocol/states.ts'
import {
  fitsInto,
  type SendRow,
  type StateCounts,
  type StoredWebhook,
  sumTransitionCounts,
  sumVersions,
  type Scope,
  VERSION_CHARACTERS,
  type VersionCounts
} from '../../../runtime/store/rows.ts'
import type {
  ContextKey,
  JournalRow,
  MessageChoice,
  MessageRow,
  OpenTasksFilter,
  ReadOptions,
  RestorableRow,
  StoredContext,
  StoredTask,
  TaskChoice,
  TaskEvent,
  TaskPage,
  TaskQuery,
  TaskRow,
  TaskSize,
  Wake,
  WakeCursor
} from '../../../runtime/store/store.ts'
import type { TransitionCount } from '../../../runtime/work-port.ts'
import { countBefore } from '../../rows/commit-rows.ts'
import { damageError, DamagedRow, originalText, reading, storedText, unlessDamaged } from '../../rows/damage.ts'
import { isOfCallers } from '../../rows/definition-rows.ts'
import type { OpenTask, OpenTasks } from '../../rows/store-reader.ts'
import type { Database, Statement } from '../driver.ts'
import type { ContextRow, StoredTaskRow, Tables, WebhookTableRow } from '../tables.ts'
import { TaskLister } from './task-lister.ts'
import type { TaskReader } from './task-reader.ts'

/** Receives the error for damaged data that is left out of an answer. */
export type ReportSqliteDamage = (error: Error) => void

/** Reads as JSON text, to be passed on unparsed. A task is a StoredTask or TaskRows. */
export interface TaskTexts {
  readTask(scope: Scope, taskId: string, options?: ReadOptions): string | undefined
  listTasks(scope: Scope, query: TaskQuery): string
  readEvents(scope: Scope, taskId: string, after: number, limit: number, bytes?: number): string
  readTaskMessages(scope: Scope, taskId: string, after: number, bytes: number): string
}

/** The names of reads that return values. */
export type SqliteReadName = Exclude<keyof SqliteReads, 'texts'>

/**
 * The reads of the store port, on one connection. Damaged data throws A2AError if it was requested by id, and is left
 * out and reported if it is one of many.
 */
export class SqliteReads {
  readonly texts: TaskTexts
  readonly #reader: TaskReader
  readonly #lister: TaskLister
  readonly #report: ReportSqliteDamage
  readonly #find
  readonly #wakes: Statement
  readonly #live: Statement
  readonly #messagesBefore: Statement
  readonly #firstMessage: Statement
  readonly #scopes: Statement
  readonly #open
  readonly #openWebhooks: Statement

  constructor(database: Database, tables: Tables, reader: TaskReader, report: ReportSqliteDamage) {
    this.#reader = reader
    this.texts = {
      readTask: (scope, taskId, options) => this.#ofTask(scope, taskId, row => reader.readText(scope, row, options)),
      listTasks: (scope, query) => {
        const { tasks, ...page } = this.#page(scope, query, (...args) => reader.readText(...args))
        return `{"tasks":[${tasks.join()}],${JSON.stringify(page).slice(1)}`
      },
      readEvents: (scope, taskId, after, limit, bytes) =>
        this.#ofTask(scope, taskId, row => reader.readEvents(row, after, limit, bytes)) ?? '[]',
      readTaskMessages: (scope, taskId, after, bytes) =>
        this.#ofTask(scope, taskId, row => reader.readMessages(row, after, bytes)) ?? '[]'
    }
    this.#lister = new TaskLister(database)
    this.#report = report
    this.#find = {
      scope: tables.scopes.reading(['tenant', 'principal']),
      scopeByNumber: tables.scopes.reading(['scope']),
      context: tables.contexts.reading(['scope', 'contextId']),
      task: tables.tasks.reading(['taskId']),
      taskByNumber: tables.tasks.reading(['task']),
      journal: tables.journal.reading(['task'], 'ORDER BY entry'),
      messages: tables.messages.reading(['context'], 'AND number < ? ORDER BY number DESC LIMIT ?'),
      send: tables.sends.reading(['scope', 'key']),
      webhooks: tables.webhooks.reading(['task'], 'ORDER BY place'),
      webhook: tables.webhooks.reading(['place']),
      transitions: tables.transitions.reading(['chart']),
      snapshot: tables.snapshots.reading(['task']),
      contextByNumber: tables.contexts.reading(['context'])
    }
    this.#wakes = database.prepare(`
      SELECT task, wakeAtMs, taskId FROM tasks WHERE wakeAtMs IS NOT NULL AND (wakeAtMs, taskId) > (?, ?) ORDER BY wakeAtMs, taskId LIMIT ?`)
    this.#live = database.prepare('SELECT task FROM tasks WHERE context = ? AND endedAtMs IS NULL ORDER BY task')
    this.#messagesBefore = database.prepare(
      countBefore(
        'SELECT number, octet_length(body) AS bytes FROM messages WHERE context = ? AND number < ? ORDER BY number DESC LIMIT ?',
        'number DESC',
        '?'
      )
    )
    this.#firstMessage = database.prepare(
      'SELECT min(number) AS number FROM messages WHERE context = ? AND task = (SELECT task FROM tasks WHERE taskId = ?)'
    )
    this.#scopes = database.prepare('SELECT scope FROM scopes ORDER BY tenant, principal')
    this.#open = openCounts(database)
    this.#openWebhooks = database.prepare(
      'SELECT place FROM webhooks WHERE isOpen = 1 AND place > ? ORDER BY place LIMIT ?'
    )
  }

  loadContext(key: ContextKey, bytes = Infinity): StoredContext | undefined {
    const context = this.#context(key)
    if (!context) return undefined
    const tasks: RestorableRow[] = []
    let left = bytes
    for (const { task } of this.#live.all(context.context) as { task: number }[]) {
      const row = this.#rowOf(task, { context: context.context, endedAtMs: null })
      if (!row) continue
      const known = { ...rowAsCommitted(row), bytes: this.#reader.sizes.bytesOf(row) }
      const snapshotBytes = this.#reader.snapshotBytesOf(task)
      if (snapshotBytes > left) {
        tasks.push({ ...known, snapshotBytes })
        continue
      }
      left -= snapshotBytes
      const snapshot = this.#safely(`Task ${originalText(row.taskId)}`, () => this.#reader.snapshotOf(row))
      if (snapshot !== undefined) tasks.push({ ...known, snapshot })
    }
    return { commit: context.commits, snapshot: context.snapshot, tasks }
  }

  readSnapshot(scope: Scope, taskId: string): string | undefined {
    return this.#ofTask(scope, taskId, row => (row.endedAtMs === null ? this.#reader.snapshotOf(row) : undefined))
  }

  readWakes(limit: number, after: WakeCursor): Wake[] {
    const wakes: Wake[] = []
    let { atMs, taskId } = { ...after, taskId: storedText(after.taskId) }
    // Damaged wakes are replaced by later ones, since a page that is not full counts as the last.
    for (;;) {
      const wanted = limit - wakes.length
      const found = this.#wakes.all(atMs, taskId, wanted) as unknown as {
        task: number
        wakeAtMs: number
        taskId: string
      }[]
      for (const { task, wakeAtMs, taskId } of found) wakes.push(...this.#wakeOf(task, { wakeAtMs, taskId }))
      const last = found.at(-1)
      if (wakes.length === limit || found.length < wanted || !last) return wakes
      atMs = last.wakeAtMs
      taskId = last.taskId
    }
  }

  readTask(scope: Scope, taskId: string, options?: ReadOptions): StoredTask | undefined {
    return this.#ofTask(scope, taskId, row => this.#reader.read(scope, row, options))
  }

  readEvents(...args: Parameters<TaskTexts['readEvents']>): TaskEvent[] {
    return JSON.parse(this.texts.readEvents(...args)) as TaskEvent[]
  }

  readTaskMessages(...args: Parameters<TaskTexts['readTaskMessages']>): MessageRow[] {
    return JSON.parse(this.texts.readTaskMessages(...args)) as MessageRow[]
  }

  readJournal(scope: Scope, taskId: string): JournalRow[] {
    const rows = this.#ofTask(scope, taskId, row => this.#find.journal.all(row.task)) ?? []
    return rows.map(({ key, body }) => ({ taskId, key: originalText(key), value: JSON.parse(body) }))
  }

  readMessages(key: ContextKey, limit: number, { before, bytes }: MessageChoice = {}): MessageRow[] {
    return reading(`Context ${key.contextId}`, () => {
      const context = this.#context(key)
      if (!context) return []
      const end =
        before === undefined
          ? Number.MAX_SAFE_INTEGER
          : Number(this.#firstMessage.get(context.context, storedText(before))?.number)
      const most =
        bytes === undefined
          ? limit
          : Math.min(limit, Number(this.#messagesBefore.get(context.context, end, limit, bytes)?.count) + 1)
      const rows = this.#find.messages.all(context.context, end, most)
      return rows.map(({ body }) => JSON.parse(body) as MessageRow).toReversed()
    })
  }

  measureTasks(choice: TaskChoice): TaskSize[] {
    const of = 'newest' in choice ? this.#context(choice)?.context : this.#scopeNumber(choice)
    return of === undefined ? [] : this.#reader.sizes.measure(of, choice)
  }

  listTasks(scope: Scope, query: TaskQuery): TaskPage {
    return this.#page(scope, query, (...args) => this.#reader.read(...args))
  }

  /** A page of tasks, each read by `read`. */
  #page<T>(
    scope: Scope,
    query: TaskQuery,
    read: (scope: Scope, row: StoredTaskRow, query: TaskQuery, fits: (bytes: number) => boolean) => T
  ): Omit<TaskPage, 'tasks'> & { tasks: T[] } {
    const number =
      query.contextId === undefined
        ? this.#scopeNumber(scope)
        : this.#context({ ...scope, contextId: query.contextId })?.context
    if (number === undefined) return { tasks: [], total: 0 }
    const of = query.contextId === undefined ? 'scope' : 'context'
    const page = this.#lister.page(of, number, query, task => this.#reader.sizes.bytesOf(task))
    const fits = fitsInto(query.within)
    const tasks = page.tasks.flatMap(({ task, time, taskId }) => {
      const row = this.#rowOf(task, { [of]: number, time, taskId })
      return (row && this.#safely(`Task ${originalText(row.taskId)}`, () => read(scope, row, query, fits))) ?? []
    })
    return { ...page, tasks }
  }

  readSend(scope: Scope, key: string): SendRow | undefined {
    return reading('The record of the message', () => {
      const number = this.#scopeNumber(scope)
      const row = number === undefined ? undefined : this.#find.send.one(number, storedText(key))
      return row && (JSON.parse(row.body) as SendRow)
    })
  }

  countOpen({ tenant, principal }: OpenTasksFilter): number {
    const names = [tenant, principal].flatMap(name => (name === undefined ? [] : [storedText(name)]))
    const { all, ofPrincipal, ofTenant, ofScope } = this.#open
    const count =
      tenant === undefined
        ? principal === undefined
          ? all
          : ofPrincipal
        : principal === undefined
          ? ofTenant
          : ofScope
    return Number(count.get(...names)?.count)
  }

  countStates(limit: number, after: string): StateCounts {
    const [context = 0, task = 0] = after.split('.').map(Number)
    const rows = this.#open.states.all(context, task, limit)
    const states: Partial<Record<TaskState, number>> = {}
    for (const row of rows) {
      const state = row.state as TaskState
      states[state] = (states[state] ?? 0) + 1
    }
    const last = rows[limit - 1]
    return last ? { states, next: `${String(last.context)}.${String(last.task)}` } : { states }
  }

  countVersions(limit: number, after: string): VersionCounts {
    const rows = this.#open.versions.all(Number(after), limit) as { task: number; start: string }[]
    const versions = sumVersions(rows.map(({ start }) => start))
    const last = rows[limit - 1]
    return last ? { versions, next: String(last.task) } : { versions }
  }

  /** Open tasks of all scopes. A task with a damaged row is left out. */
  openTasks(limit: number, after: string): OpenTasks {
    const rows = this.#open.tasks.all(Number(after), limit) as { task: number }[]
    const scopes = new Map<number, Scope | undefined>()
    const tasks = rows.flatMap(({ task }): OpenTask[] => {
      const row = this.#safely(`The task with the row ${task}`, () => this.#find.taskByNumber.one(task))
      if (!row) return []
      if (!scopes.has(row.scope)) scopes.set(row.scope, this.#scopeAt(row.scope))
      const scope = scopes.get(row.scope)
      const taskId = originalText(row.taskId)
      const stored = this.#safely(
        `Task ${taskId}`,
        () => this.#find.contextByNumber.one(row.context) && this.#find.snapshot.one(task)
      )
      if (!scope) return []
      return [
        {
          ...scope,
          contextId: originalText(row.contextId),
          taskId,
          state: row.state as TaskState,
          ...(row.wakeAtMs !== null && { wakeAtMs: row.wakeAtMs }),
          ...(stored && { snapshot: stored.snapshot })
        }
      ]
    })
    const last = rows[limit - 1]
    return last ? { tasks, next: String(last.task) } : { tasks }
  }

  readWebhooks(scope: Scope, taskId: string): StoredWebhook[] {
    return (
      this.#ofTask(scope, taskId, row =>
        this.#find.webhooks.all(row.task).map(webhook => webhookOf(scope, row, webhook))
      ) ?? []
    )
  }

  readOpenWebhooks(limit: number, after: number): StoredWebhook[] {
    const webhooks: StoredWebhook[] = []
    let from = after
    // As with wakes, damaged rows must not make a page look like the last.
    for (;;) {
      const wanted = limit - webhooks.length
      const found = this.#openWebhooks.all(from, wanted) as { place: number }[]
      for (const { place } of found) webhooks.push(...this.#openWebhook(place))
      const last = found.at(-1)
      if (webhooks.length === limit || found.length < wanted || !last) return webhooks
      from = last.place
    }
  }

  readTransitions(chart: string): TransitionCount[] {
    const rows = reading('The counts of transitions', () => this.#find.transitions.all(chart))
    return sumTransitionCounts(
      rows.map(({ count, timed, ms, ...row }) => ({
        chart,
        previous: originalText(row.previous),
        taken: originalText(row.taken),
        count,
        timed,
        ms
      }))
    )
  }

  /** Every scope of callers that has data. */
  scopes(): Scope[] {
    return (this.#scopes.all() as { scope: number }[]).flatMap(({ scope }) => {
      const found = this.#scopeAt(scope)
      return found && isOfCallers(found) ? [found] : []
    })
  }

  #scopeAt(scope: number): Scope | undefined {
    const row = this.#safely(`The scope with the row ${scope}`, () => this.#find.scopeByNumber.one(scope))
    return row && { tenant: originalText(row.tenant), principal: originalText(row.principal) }
  }

  #scopeNumber({ tenant, principal }: Scope): number | undefined {
    return reading('What the caller has', () => this.#find.scope.one(storedText(tenant), storedText(principal)))?.scope
  }

  #context(key: ContextKey): ContextRow | undefined {
    const scope = this.#scopeNumber(key)
    return scope === undefined
      ? undefined
      : reading(`Context ${key.contextId}`, () => this.#find.context.one(scope, storedText(key.contextId)))
  }

  /** Reads data of a task in a scope. */
  #ofTask<T>(scope: Scope, taskId: string, read: (row: StoredTaskRow) => T): T | undefined {
    const number = this.#scopeNumber(scope)
    if (number === undefined) return undefined
    return reading(`Task ${taskId}`, () => {
      const row = this.#find.task.one(storedText(taskId))
      return row?.scope === number ? read(row) : undefined
    })
  }

  /** The row that an index refers to, if it is intact and agrees with the index. */
  #rowOf(task: number, expected: Partial<StoredTaskRow>): StoredTaskRow | undefined {
    return this.#safely(`The task with the row ${task}`, () => {
      const row = this.#find.taskByNumber.one(task)
      if (!row || Object.entries(expected).some(([column, cell]) => row[column as keyof StoredTaskRow] !== cell))
        throw new DamagedRow('tasks')
      return row
    })
  }

  #wakeOf(task: number, expected: { wakeAtMs: number; taskId: string }): Wake[] {
    const row = this.#rowOf(task, expected)
    const scope =
      row &&
      this.#safely(`The scope of task ${originalText(row.taskId)}`, () => this.#find.scopeByNumber.one(row.scope))
    if (!row || !scope) return []
    const key = {
      tenant: originalText(scope.tenant),
      principal: originalText(scope.principal),
      contextId: originalText(row.contextId)
    }
    return [{ key, taskId: originalText(row.taskId), atMs: expected.wakeAtMs }]
  }

  #openWebhook(place: number): StoredWebhook[] {
    const webhook = this.#safely(`The webhook with the row ${place}`, () => this.#find.webhook.one(place))
    const row = webhook && this.#rowOf(webhook.task, {})
    const scope =
      row &&
      this.#safely(`The scope of task ${originalText(row.taskId)}`, () => this.#find.scopeByNumber.one(row.scope))
    return scope
      ? [webhookOf({ tenant: originalText(scope.tenant), principal: originalText(scope.principal) }, row, webhook)]
      : []
  }

  #safely<T>(what: string, read: () => T): T | undefined {
    return unlessDamaged(read, error => this.#report(damageError(what, error)))
  }
}

function rowAsCommitted({
  taskId,
  state,
  generation,
  time,
  wakeAtMs
}: StoredTaskRow): TaskRow & { readonly statusTime: string } {
  return {
    taskId: originalText(taskId),
    state: state as TaskRow['state'],
    generation,
    statusTime: time,
    ...(wakeAtMs !== null && { wakeAtMs })
  }
}

function webhookOf(
  { tenant, principal }: Scope,
  { generation, endedAtMs }: StoredTaskRow,
  { place, body }: WebhookTableRow
): StoredWebhook {
  return {
    scope: { tenant, principal },
    row: JSON.parse(body) as StoredWebhook['row'],
    generation,
    hasEnded: endedAtMs !== null,
    place
  }
}

const OPEN = Object.keys(TASK_STATES)
  .filter(state => !isTerminal(state as TaskState))
  .map(state => `'${state}'`)
  .join(', ')

/** Finds every tenant by one step in the index of scopes. */
const TENANTS = `
  WITH RECURSIVE tenants (tenant) AS (
    SELECT min(tenant) FROM scopes UNION ALL SELECT (SELECT min(tenant) FROM scopes WHERE tenant > tenants.tenant) FROM tenants WHERE tenants.tenant IS NOT NULL
  )`

/**
 * Queries that count open tasks: all, or by indexes those of a principal, of a tenant, or of both; and one that gives
 * their states.
 */
function openCounts(database: Database) {
  const tasks = `CROSS JOIN tasks ON tasks.scope = scopes.scope AND tasks.state IN (${OPEN})`
  return {
    all: database.prepare('SELECT count(*) AS count FROM tasks WHERE endedAtMs IS NULL'),
    states: database.prepare(
      'SELECT context, task, state FROM tasks WHERE endedAtMs IS NULL AND (context, task) > (?, ?) ORDER BY context, task LIMIT ?'
    ),
    tasks: database.prepare('SELECT task FROM snapshots WHERE task > ? ORDER BY task LIMIT ?'),
    versions: database.prepare(
      `SELECT task, substr(snapshot, 1, ${VERSION_CHARACTERS}) AS start FROM snapshots WHERE task > ? ORDER BY task LIMIT ?`
    ),
    ofPrincipal: database.prepare(`
      ${TENANTS} SELECT count(*) AS count FROM tenants CROSS JOIN scopes ON scopes.tenant = tenants.tenant AND scopes.principal = ? ${tasks}`),
    ofTenant: database.prepare(`SELECT count(*) AS count FROM scopes ${tasks} WHERE scopes.tenant = ?`),
    ofScope: database.prepare(
      `SELECT count(*) AS count FROM scopes ${tasks} WHERE scopes.tenant = ? AND scopes.principal = ?`
    )
  }
}
