import type { TaskState } from '../../../machines/protocol/states.ts'
import {
  sumTransitionCounts,
  type SendRow,
  type StateCounts,
  sumVersions,
  type VersionCounts,
  type StoredWebhook,
  type Scope
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
import { checkCount, lackingIn } from '../../rows/commit-rows.ts'
import {
  damageError,
  DamagedRow,
  originalText,
  reading,
  storedText,
  checksumOf,
  unlessDamaged
} from '../../rows/damage.ts'
import { isOfCallers } from '../../rows/definition-rows.ts'
import type { OpenTask, OpenTasks } from '../../rows/store-reader.ts'
import type { PostgresCell, Prepared, Session } from '../session/session.ts'
import {
  binaryArray,
  storedContextOf,
  nameKeyOf,
  TASK_AT,
  TASK_WIDTH,
  taskOf,
  verifyRow,
  type PgContext,
  type PgTask
} from '../write/row-shapes.ts'
import { transitionOf } from '../write/transition-rows.ts'
import { rowIn, webhookOf, type PlacedWebhook } from '../write/webhook-rows.ts'
import { readTaskPage } from './list-tasks.ts'
import { READS } from './statements.ts'
import { eventIn, messageIn, readTasks, snapshotsOf } from './task-content.ts'

/** Receives the error for damaged data that is left out of an answer. */
export type ReportPostgresDamage = (error: Error) => void

/** The maximum number of rows in a page of a task. */
const PAGE_ROWS = 1000

/** The number of columns before a webhook's task. */
const WEBHOOK_WIDTH = 8

/** The number of columns of a context. */
const CONTEXT_WIDTH = 11

/**
 * The reads of the store port, on one session. Damaged data throws A2AError if it was requested by id, and is left out
 * and reported if it is one of many.
 */
export class PostgresReads {
  readonly #session: Session
  readonly #report: ReportPostgresDamage

  constructor(session: Session, report: ReportPostgresDamage) {
    this.#session = session
    this.#report = report
  }

  async loadContext(key: ContextKey, bytes = Infinity): Promise<StoredContext | undefined> {
    // A commit between two statements shows in the context's number; then both are repeated.
    for (;;) {
      const rows = await this.#rows(READS.live, namesOf(key))
      const [first] = rows
      if (!first) return undefined
      const { row: context, snapshot } = reading(`Context ${key.contextId}`, () => storedContextOf(first))
      const tasks = await this.#restorable(context, rows.slice(1), bytes)
      if (tasks) return { commit: context.commits, snapshot, tasks }
    }
  }

  async readSnapshot(scope: Scope, taskId: string): Promise<string | undefined> {
    return this.#ofTask(scope, taskId, async row =>
      row.endedAtMs === null ? (await snapshotsOf(this.#session, [row]))(row) : undefined
    )
  }

  async readWakes(limit: number, after: WakeCursor): Promise<Wake[]> {
    const wakes: Wake[] = []
    let { atMs, taskId } = { ...after, taskId: storedText(after.taskId) }
    // Damaged wakes are replaced by later ones, since a page that is not full counts as the last.
    for (;;) {
      const wanted = limit - wakes.length
      const found = await this.#rows(READS.wakes, [atMs, taskId, wanted])
      for (const fields of found) wakes.push(...this.#wakeOf(fields))
      const last = found.at(-1)
      if (wakes.length === limit || found.length < wanted || !last) return wakes
      atMs = Number(last[TASK_AT.wakeAtMs])
      taskId = String(last[TASK_AT.taskId])
    }
  }

  async readTask(scope: Scope, taskId: string, options?: ReadOptions): Promise<StoredTask | undefined> {
    return this.#ofTask(scope, taskId, async row => {
      const [task] = await readTasks(this.#session, scope, [row], options)
      if (task instanceof DamagedRow) throw task
      return task
    })
  }

  async readEvents(scope: Scope, taskId: string, after: number, limit: number, bytes?: number): Promise<TaskEvent[]> {
    const found = await this.#ofTask(scope, taskId, async ({ task, generation }) => {
      const most =
        bytes === undefined ? limit : await this.#upTo(bytes, limit, READS.eventsBefore, [task, after, limit])
      const events = (await this.#rows(READS.events, [task, after, Math.min(most, 2 ** 31 - 1)])).map(eventIn)
      const { until, count } = lackingIn(events, { after, most, generation })
      if (count > 0) {
        const [numbered] = await this.#rows(READS.numberedMessages, [task, after, until])
        checkCount(Number(numbered?.[0]), count)
      }
      return events
    })
    return found ?? []
  }

  async readTaskMessages(scope: Scope, taskId: string, after: number, bytes: number): Promise<MessageRow[]> {
    const found = await this.#ofTask(scope, taskId, async ({ task, messages }) => {
      const most = await this.#upTo(bytes, PAGE_ROWS, READS.taskMessagesBefore, [task, after, PAGE_ROWS])
      const rows = await this.#rows(READS.taskMessages, [task, after, most])
      checkCount(rows.length, Math.min(most, messages - after))
      return rows.map(messageIn)
    })
    return found ?? []
  }

  async readJournal(scope: Scope, taskId: string): Promise<JournalRow[]> {
    const rows = await this.#ofTask(scope, taskId, async ({ task }) =>
      (await this.#rows(READS.journal, [task])).map(journalOf)
    )
    return (rows ?? []).map(({ name, body }) => ({ taskId, key: originalText(name), value: JSON.parse(body) }))
  }

  async readMessages(key: ContextKey, limit: number, { before, bytes }: MessageChoice = {}): Promise<MessageRow[]> {
    const context = await this.#context(key)
    if (!context) return []
    const end =
      before === undefined
        ? Number.MAX_SAFE_INTEGER
        : Number((await this.#rows(READS.firstMessage, [context.context, storedText(before)]))[0]?.[0])
    const most =
      bytes === undefined
        ? Math.min(limit, 2 ** 31 - 1)
        : await this.#upTo(bytes, limit, READS.messagesBefore, [context.context, end, limit])
    const rows = await this.#rows(READS.messages, [context.context, end, most])
    return reading(`Context ${key.contextId}`, () => rows.map(messageIn).toReversed())
  }

  async measureTasks(choice: TaskChoice): Promise<TaskSize[]> {
    const context = 'newest' in choice ? await this.#context(choice) : undefined
    if ('newest' in choice && !context) return []
    const rows =
      'newest' in choice
        ? await this.#rows(READS.newestSizes, [context?.context, choice.newest])
        : await this.#rows(READS.sizes, [
            storedText(choice.tenant),
            storedText(choice.principal),
            choice.taskIds.map(storedText)
          ])
    return rows.map(([taskId, bytes, journalBytes]) => ({
      taskId: originalText(String(taskId)),
      bytes: Number(bytes),
      journalBytes: Number(journalBytes)
    }))
  }

  async listTasks(scope: Scope, query: TaskQuery): Promise<TaskPage> {
    const context =
      query.contextId === undefined ? undefined : await this.#context({ ...scope, contextId: query.contextId })
    if (query.contextId !== undefined && !context) return { tasks: [], total: 0 }
    const { rows, ...page } = await readTaskPage(this.#session, scope, context, query, (taskId, error) =>
      this.#report(damageError(`Task ${originalText(taskId)}`, error))
    )
    const found = await readTasks(this.#session, scope, rows, query)
    const tasks: StoredTask[] = []
    for (const [i, each] of found.entries()) {
      // A row that is not as it was when the page was read may have changed since.
      const { taskId } = rows[i] as PgTask
      const task = each instanceof DamagedRow ? await this.#again(scope, taskId, query) : each
      if (task) tasks.push(task)
    }
    return { ...page, tasks }
  }

  async countOpen({ tenant, principal }: OpenTasksFilter): Promise<number> {
    const names = [tenant, principal].flatMap(name => (name === undefined ? [] : [storedText(name)]))
    const { openOfAll, openOfPrincipal, openOfTenant, openOfScope } = READS
    const [[count] = []] = await this.#rows(
      tenant === undefined
        ? principal === undefined
          ? openOfAll
          : openOfPrincipal
        : principal === undefined
          ? openOfTenant
          : openOfScope,
      names
    )
    return Number(count)
  }

  /** Counts everything at once: the counters are few, however many tasks there are. */
  async countStates(): Promise<StateCounts> {
    return {
      states: Object.fromEntries((await this.#rows(READS.states, [])).map(([state, count]) => [state, Number(count)]))
    }
  }

  async countVersions(limit: number, after: string): Promise<VersionCounts> {
    const rows = await this.#rows(READS.versions, [after || '0', String(limit)])
    const versions = sumVersions(rows.map(([, start]) => String(start)))
    const last = rows[limit - 1]
    return last ? { versions, next: String(last[0]) } : { versions }
  }

  /** Open tasks of all scopes. A task with a damaged row is left out. */
  async openTasks(limit: number, after: string): Promise<OpenTasks> {
    const found = await this.#rows(READS.openTasks, [after || '0', String(limit)])
    const rows = found.flatMap(fields => {
      const row = this.#safely(`Task ${originalText(String(fields[TASK_AT.taskId]))}`, () => taskOf(fields))
      return row && row.endedAtMs === null ? [row] : []
    })
    const snapshotOf = await snapshotsOf(this.#session, rows)
    const numbers = [...new Set(rows.map(({ context }) => context))]
    const contexts = await this.#rows(READS.contextsOf, [binaryArray('int8', numbers)])
    const intact = new Set(
      contexts.flatMap(fields => this.#safely('A context', () => storedContextOf(fields))?.row.context ?? [])
    )
    const tasks = rows.map((row): OpenTask => {
      const taskId = originalText(row.taskId)
      const snapshot = intact.has(row.context) ? this.#safely(`Task ${taskId}`, () => snapshotOf(row)) : undefined
      return {
        tenant: originalText(row.tenant),
        principal: originalText(row.principal),
        contextId: originalText(row.contextId),
        taskId,
        state: row.state as TaskState,
        ...(row.wakeAtMs !== null && { wakeAtMs: row.wakeAtMs }),
        ...(snapshot !== undefined && { snapshot })
      }
    })
    const last = found[limit - 1]
    return last ? { tasks, next: String(last[TASK_AT.task]) } : { tasks }
  }

  async readSend(scope: Scope, key: string): Promise<SendRow | undefined> {
    const [fields] = await this.#rows(READS.send, [
      storedText(scope.tenant),
      storedText(scope.principal),
      nameKeyOf(storedText(key))
    ])
    return reading('The record of the message', () => fields && sendOf(fields))
  }

  async readWebhooks(scope: Scope, taskId: string): Promise<StoredWebhook[]> {
    const found = await this.#ofTask(scope, taskId, async row =>
      (await this.#rows(READS.webhooks, [row.task])).map(fields => storedWebhook(scope, row, webhookOf(fields)))
    )
    return found ?? []
  }

  async readOpenWebhooks(limit: number, after: number): Promise<StoredWebhook[]> {
    const webhooks: StoredWebhook[] = []
    let from = after
    // As with wakes, damaged rows must not make a page look like the last.
    for (;;) {
      const wanted = limit - webhooks.length
      const found = await this.#rows(READS.openWebhooks, [from, wanted])
      for (const fields of found) webhooks.push(...this.#openWebhook(fields))
      const last = found.at(-1)
      if (webhooks.length === limit || found.length < wanted || !last) return webhooks
      from = Number(last[0])
    }
  }

  async readTransitions(chart: string): Promise<TransitionCount[]> {
    const rows = await this.#rows(READS.transitions, [chart])
    return reading('The counts of transitions', () => sumTransitionCounts(rows.map(transitionOf)))
  }

  /** Every scope of callers that has data. */
  async scopes(): Promise<Scope[]> {
    const all = (await this.#rows(READS.scopes, [])).map(([tenant, principal]) => ({
      tenant: originalText(String(tenant)),
      principal: originalText(String(principal))
    }))
    return all.filter(isOfCallers)
  }

  #rows(statement: Prepared, values: readonly unknown[]): Promise<PostgresCell[][]> {
    return this.#session.rows(statement, values)
  }

  /** How many rows a read has that stops after the one that reaches `bytes`, at most `limit`. */
  async #upTo(bytes: number, limit: number, before: Prepared, values: readonly unknown[]): Promise<number> {
    const [count] = await this.#rows(before, [...values, bytes])
    return Math.min(limit, Number(count?.[0]) + 1)
  }

  async #context(key: ContextKey): Promise<PgContext | undefined> {
    const [fields] = await this.#rows(READS.context, namesOf(key))
    return reading(`Context ${key.contextId}`, () => fields && storedContextOf(fields).row)
  }

  /** Reads data of a task in a scope. Damaged data is read again if the task has changed in the meantime. */
  async #ofTask<T>(
    { tenant, principal }: Scope,
    taskId: string,
    read: (row: PgTask) => Promise<T>
  ): Promise<T | undefined> {
    let before: string | undefined
    for (;;) {
      const [fields] = await this.#rows(READS.task, [storedText(taskId)])
      if (!fields || fields[3] !== storedText(tenant) || fields[4] !== storedText(principal)) return undefined
      try {
        return await read(taskOf(fields))
      } catch (error) {
        if (!(error instanceof DamagedRow)) throw error
        if (fields.join() === before) throw damageError(`Task ${taskId}`, error)
        before = fields.join()
      }
    }
  }

  /** Reads a task of a list on its own; `undefined` if it is damaged or gone. */
  async #again(scope: Scope, taskId: string, query: TaskQuery): Promise<StoredTask | undefined> {
    return this.readTask(scope, originalText(taskId), query).catch((error: Error) => {
      if (!(error.cause instanceof DamagedRow)) throw error
      this.#report(error)
      return undefined
    })
  }

  /**
   * The live tasks of a context, with the snapshots that fit within the limit; `undefined` if a commit came in between.
   */
  async #restorable(
    { context, commits }: PgContext,
    rows: readonly PostgresCell[][],
    bytes: number
  ): Promise<RestorableRow[] | undefined> {
    const live = rows.flatMap(fields => {
      const task = fields.slice(CONTEXT_WIDTH, CONTEXT_WIDTH + TASK_WIDTH)
      const row = this.#safely(`Task ${originalText(String(task[TASK_AT.taskId]))}`, () => taskOf(task))
      return row ? [{ row, snapshotBytes: Number(fields.at(-1)) }] : []
    })
    let left = bytes
    const read = live.filter(({ snapshotBytes }) => {
      if (snapshotBytes > left) return false
      left -= snapshotBytes
      return true
    })
    const snapshotOf = await snapshotsOf(
      this.#session,
      read.map(({ row }) => row)
    )
    if (read.length > 0 && Number((await this.#rows(READS.commits, [context]))[0]?.[0]) !== commits) return undefined
    return live.flatMap<RestorableRow>(each => {
      const known = rowAsCommitted(each.row)
      if (!read.includes(each)) return [{ ...known, snapshotBytes: each.snapshotBytes }]
      const snapshot = this.#safely(`Task ${originalText(each.row.taskId)}`, () => snapshotOf(each.row))
      return snapshot === undefined ? [] : [{ ...known, snapshot }]
    })
  }

  #wakeOf(fields: readonly PostgresCell[]): Wake[] {
    const row = this.#safely(`Task ${originalText(String(fields[TASK_AT.taskId]))}`, () => taskOf(fields))
    if (!row) return []
    const key = {
      tenant: originalText(row.tenant),
      principal: originalText(row.principal),
      contextId: originalText(row.contextId)
    }
    return [{ key, taskId: originalText(row.taskId), atMs: Number(row.wakeAtMs) }]
  }

  #openWebhook(fields: readonly PostgresCell[]): StoredWebhook[] {
    const found = this.#safely(`The webhook with the row ${fields[0]}`, () => ({
      webhook: webhookOf(fields),
      task: taskOf(fields.slice(WEBHOOK_WIDTH))
    }))
    return found
      ? [
          storedWebhook(
            { tenant: originalText(found.task.tenant), principal: originalText(found.task.principal) },
            found.task,
            found.webhook
          )
        ]
      : []
  }

  #safely<T>(what: string, read: () => T): T | undefined {
    return unlessDamaged(read, error => this.#report(damageError(what, error)))
  }
}

function namesOf({ tenant, principal, contextId }: ContextKey): string[] {
  return [storedText(tenant), storedText(principal), storedText(contextId)]
}

function rowAsCommitted({
  taskId,
  state,
  generation,
  time,
  wakeAtMs,
  bytes
}: PgTask): TaskRow & { readonly statusTime: string } {
  return {
    taskId: originalText(taskId),
    state: state as TaskRow['state'],
    generation,
    statusTime: time,
    bytes,
    ...(wakeAtMs !== null && { wakeAtMs })
  }
}

function journalOf([task, key, name, body, sum]: readonly PostgresCell[]): { name: string; body: string } {
  const cells = [Number(task), String(key), String(name), String(body)]
  return verifyRow('journal', { name: String(name), body: String(body) }, checksumOf(cells), sum)
}

function sendOf([tenant, principal, key, contextId, shard, expiresAtMs, body, sum]: readonly PostgresCell[]): SendRow {
  const cells = [
    String(tenant),
    String(principal),
    String(key),
    String(contextId),
    Number(shard),
    Number(expiresAtMs),
    String(body)
  ]
  return JSON.parse(verifyRow('sends', String(body), checksumOf(cells), sum)) as SendRow
}

function storedWebhook(
  { tenant, principal }: Scope,
  { generation, endedAtMs }: PgTask,
  { place, row }: PlacedWebhook
): StoredWebhook {
  return { scope: { tenant, principal }, row: rowIn(row), generation, hasEnded: endedAtMs !== null, place }
}
