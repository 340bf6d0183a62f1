import { killPoint } from '../../../runtime/primitives/kill-points.ts'
import { LruCache } from '../../../runtime/primitives/lru-cache.ts'
import type { Database, Statement } from '../driver.ts'
import type { CommitRows, LogRow, TaskRows } from '../../rows/commit-rows.ts'
import { reading } from '../../rows/damage.ts'
import { originalText, storedText } from '../../rows/stored-text.ts'
import type { ContextRow, ScopeRow, SnapshotRow, StoredTaskRow, Tables } from '../rows/tables.ts'
import { JournalWriter } from './journal-writer.ts'
import type { WebhookWriter } from './webhook-writer.ts'

/** The size of each LRU cache of rows, so that the next commit of a context need not read them. */
const KEPT_ROWS = 2048

/** A task in a commit: its new row, and the old one if it exists. */
interface Written {
  readonly row: StoredTaskRow
  readonly before: StoredTaskRow | undefined
  /** `undefined` if the commit has only events and messages of it. */
  readonly snapshot: string | null | undefined
}

/** Writes the rows of commits. The caller opens the transaction, and calls {@link CommitWriter.forget} after a rollback. */
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

  /** Writes a commit and returns true; returns false if it lost its race. Throws A2AError, after a part, for damaged rows. */
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

  /** Clears the caches after other writes or a rollback. */
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

  /** A task of a context; `undefined` for an unknown one or one of another context. */
  #taskIn({ context }: ContextRow, taskId: string): StoredTaskRow | undefined {
    const row = this.#tasks.get(taskId, () => reading(`Task ${originalText(taskId)}`, () => this.#find.task.one(taskId)))
    return row?.context === context ? row : undefined
  }

  /** The task of a commit's row, with the commit applied. */
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

  /** The task of a log entry, which is added to the tasks that the commit writes. */
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

/** Whether no index changes. */
function isPlacedAlike(row: StoredTaskRow, before: StoredTaskRow): boolean {
  return row.state === before.state && row.time === before.time && row.wakeAtMs === before.wakeAtMs && row.endedAtMs === before.endedAtMs
}

function nameOf(tenant: string, principal: string): string {
  return `${tenant.length}.${tenant}${principal}`
}

type Numbered = 'scope' | 'context' | 'task'

/** Numbers new scopes, contexts and tasks of a file. */
class Numbers {
  readonly #newest: Readonly<Record<Numbered, Statement>>
  readonly #last = new Map<Numbered, number>()

  constructor(database: Database) {
    const newest = (kind: Numbered, table: string) => database.prepare(`SELECT max(${kind}) AS newest FROM ${table}`)
    this.#newest = { scope: newest('scope', 'scopes'), context: newest('context', 'contexts'), task: newest('task', 'tasks') }
  }

  /** The largest number so far plus one. */
  next(kind: Numbered): number {
    const number = (this.#last.get(kind) ?? Number(this.#newest[kind].get()?.newest)) + 1
    this.#last.set(kind, number)
    return number
  }

  /** Reads the largest numbers from the file again. */
  forget(): void {
    this.#last.clear()
  }
}
