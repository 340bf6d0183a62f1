import { killPoint } from '../../../runtime/primitives/kill-points.ts'
import { LruCache } from '../../../runtime/primitives/lru-cache.ts'
import type { Database, Statement } from '../driver.ts'
import type { CommitRows, LogRow, TaskRows } from '../rows/commit-rows.ts'
import { reading } from '../rows/damage.ts'
import { Numbers } from '../rows/numbers.ts'
import { originalText, storedText } from '../rows/stored-text.ts'
import type { ContextRow, ScopeRow, SnapshotRow, StoredTaskRow, Tables } from '../rows/tables.ts'
import { JournalWriter } from './journal-writer.ts'
import type { WebhookWriter } from './webhook-writer.ts'

/** How many rows of each kind the writer keeps, so that the next commit of a context need not read them. */
const KEPT_ROWS = 2048

/** A task that a commit writes: its row as it becomes, and as it was if it is not new. */
interface Written {
  readonly row: StoredTaskRow
  readonly before: StoredTaskRow | undefined
  /** None for one of which there is no more than events and messages. */
  readonly snapshot: string | null | undefined
}

/** Writes the rows of commits. Whoever calls has a transaction open, and calls {@link CommitWriter.forget} when it was rolled back. */
export class CommitWriter {
  readonly #tables: Tables
  readonly #journal: JournalWriter
  readonly #webhooks: WebhookWriter
  readonly #numbers: Numbers
  readonly #scopes = new LruCache<ScopeRow>(KEPT_ROWS)
  readonly #contexts = new LruCache<ContextRow>(KEPT_ROWS)
  readonly #tasks = new LruCache<StoredTaskRow>(KEPT_ROWS)
  readonly #find
  readonly #changeContext: (row: ContextRow) => void
  readonly #moveTask: (row: StoredTaskRow) => void
  readonly #changeTask: (row: StoredTaskRow) => void
  readonly #changeSnapshot: (row: SnapshotRow) => void
  readonly #dropSnapshot: Statement
  readonly #dropSend: Statement

  constructor(database: Database, tables: Tables, webhooks: WebhookWriter) {
    this.#tables = tables
    this.#webhooks = webhooks
    this.#journal = new JournalWriter(database, tables)
    this.#numbers = new Numbers(database)
    this.#find = {
      scope: tables.scopes.reading(['tenant', 'principal']),
      context: tables.contexts.reading(['scope', 'contextId']),
      task: tables.tasks.reading(['taskId'])
    }
    this.#changeContext = tables.contexts.updating(['commits', 'atMs', 'tasks', 'messages', 'snapshot'], ['context'])
    this.#moveTask = tables.tasks.updating(['state', 'time', 'statusAt', 'generation', 'messages', 'wakeAtMs', 'endedAtMs'], ['task'])
    this.#changeTask = tables.tasks.updating(['statusAt', 'generation', 'messages'], ['task'])
    this.#changeSnapshot = tables.snapshots.updating(['snapshot'], ['task'])
    this.#dropSnapshot = database.prepare('DELETE FROM snapshots WHERE task = ?')
    this.#dropSend = database.prepare('DELETE FROM sends WHERE scope = ? AND key = ?')
  }

  /** Writes a commit and answers true, or, when its race is lost, writes nothing and answers false. Throws A2AError, having written a part, where rows are damaged. */
  write(commit: CommitRows): boolean {
    const { tenant, principal, contextId, expected, atMs, snapshot, log, journal } = commit
    const scope = this.#scopes.get(nameOf(tenant, principal), () => this.#find.scope.one(tenant, principal))
    const known = scope && this.#contextOf(scope, contextId)
    if ((known?.commits ?? 0) !== expected) return false
    const context = known ?? this.#newContext(scope ?? this.#newScope(tenant, principal), contextId)
    this.#writeSends(context, commit)
    killPoint('sends written')
    const tasks = new Map(commit.tasks.map(row => [row.taskId, this.#taskFor(context, row, atMs)]))
    for (const entry of log) this.#writeEntry(context, entry, this.#entered(context, tasks, entry.taskId))
    killPoint('events written')
    for (const task of tasks.values()) this.#writeTask(task)
    Object.assign(context, { commits: expected + 1, atMs, snapshot })
    if (known) this.#changeContext(context)
    else this.#tables.contexts.insert(context)
    for (const row of journal) this.#journal.write(this.#taskIn(context, row.taskId), row)
    for (const webhook of commit.webhooks) this.#webhooks.writeTold(this.#taskIn(context, storedText(webhook.taskId)), webhook)
    killPoint('rows written')
    return true
  }

  /** Forgets what it knows of the tables: they are not as it wrote them. */
  forget(): void {
    this.#scopes.clear()
    this.#contexts.clear()
    this.#tasks.clear()
    this.#numbers.forget()
  }

  #contextOf({ scope }: ScopeRow, contextId: string): ContextRow | undefined {
    return this.#contexts.get(`${scope}.${contextId}`, () => reading(`Context ${originalText(contextId)}`, () => this.#find.context.one(scope, contextId)))
  }

  #newScope(tenant: string, principal: string): ScopeRow {
    const row = { scope: this.#numbers.next('scope'), tenant, principal }
    this.#tables.scopes.insert(row)
    this.#scopes.set(nameOf(tenant, principal), row)
    return row
  }

  #newContext({ scope }: ScopeRow, contextId: string): ContextRow {
    const row = { context: this.#numbers.next('context'), scope, contextId, commits: 0, atMs: 0, tasks: 0, messages: 0, snapshot: '' }
    this.#contexts.set(`${scope}.${contextId}`, row)
    return row
  }

  #writeSends({ scope, contextId }: ContextRow, { sends }: CommitRows): void {
    for (const row of sends) {
      this.#dropSend.run(scope, row.key)
      this.#tables.sends.insert({ ...row, scope, contextId })
    }
  }

  /** A task of a context; nothing for one that is unknown or of another context. */
  #taskIn({ context }: ContextRow, taskId: string): StoredTaskRow | undefined {
    const row = this.#tasks.get(taskId, () => reading(`Task ${originalText(taskId)}`, () => this.#find.task.one(taskId)))
    return row?.context === context ? row : undefined
  }

  /** The task of a commit's row, as the commit makes it. */
  #taskFor(context: ContextRow, { taskId, state, generation, snapshot, wakeAtMs }: TaskRows, atMs: number): Written {
    const before = this.#taskIn(context, taskId)
    const endedAtMs = snapshot === null ? atMs : null
    return { row: { ...(before ?? this.#newTask(context, taskId)), state, generation, wakeAtMs, endedAtMs }, before, snapshot }
  }

  #newTask(context: ContextRow, taskId: string): StoredTaskRow {
    context.tasks += 1
    const { scope, contextId } = context
    return {
      task: this.#numbers.next('task'), scope, context: context.context, contextId, taskId,
      state: '', time: '', statusAt: 0, generation: 0, messages: 0, wakeAtMs: null, endedAtMs: null
    }
  }

  /** The task that an entry of the log is about, among those that the commit writes from then on. */
  #entered(context: ContextRow, tasks: Map<string, Written>, taskId: string | undefined): StoredTaskRow | undefined {
    if (taskId === undefined) return undefined
    const written = tasks.get(taskId)
    if (written) return written.row
    const before = this.#taskIn(context, taskId)
    if (!before) return undefined
    const row = { ...before }
    tasks.set(taskId, { row, before, snapshot: undefined })
    return row
  }

  #writeEntry(context: ContextRow, { body, large, generation, state, time, isTerm }: LogRow, task: StoredTaskRow | undefined): void {
    if (generation === 0) {
      context.messages += 1
      if (task) task.messages += 1
      return this.#tables.messages.insert({ context: context.context, number: context.messages, task: task?.task ?? null, body })
    }
    if (!task) return
    this.#tables.events.insert({ task: task.task, generation, isTerm: isTerm ? 1 : 0, body: large ? JSON.stringify(large) : body })
    task.generation = Math.max(task.generation, generation)
    if (state !== undefined) Object.assign(task, { state, time, statusAt: generation })
  }

  #writeTask({ row, before, snapshot }: Written): void {
    this.#tasks.set(row.taskId, row)
    if (!before) this.#tables.tasks.insert(row)
    else if (isPlacedAlike(row, before)) this.#changeTask(row)
    else this.#moveTask(row)
    if (snapshot === undefined) return
    if (snapshot === null) this.#journal.forget(row)
    this.#writeSnapshot(row.task, snapshot, before !== undefined && before.endedAtMs === null)
  }

  #writeSnapshot(task: number, snapshot: string | null, isThere: boolean): void {
    if (snapshot === null) this.#dropSnapshot.run(task)
    else if (isThere) this.#changeSnapshot({ task, snapshot })
    else this.#tables.snapshots.insert({ task, snapshot })
  }
}

/** Whether no index has to be changed. */
function isPlacedAlike(row: StoredTaskRow, before: StoredTaskRow): boolean {
  return row.state === before.state && row.time === before.time && row.wakeAtMs === before.wakeAtMs && row.endedAtMs === before.endedAtMs
}

function nameOf(tenant: string, principal: string): string {
  return `${tenant.length}.${tenant}${principal}`
}
