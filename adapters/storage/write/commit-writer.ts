import { LruCache } from '../../../runtime/primitives/collections.ts'
import { killPoint } from '../../../runtime/primitives/kill-points.ts'
import type { CommitRows, CountChange, LogRow, TaskColumns } from '../../rows/commit-rows.ts'
import { originalText, reading, storedText, unlessDamaged } from '../../rows/damage.ts'
import type { Database, Statement } from '../driver.ts'
import type {
  ContextRow,
  JournalTableRow,
  Reading,
  ScopeRow,
  SnapshotRow,
  StoredTaskRow,
  Tables,
  TransitionRow
} from '../tables.ts'
import type { WebhookWriter } from './webhook-writer.ts'

/** The size of each LRU cache of rows, so that the next commit of a context need not read them. */
const KEPT_ROWS = 2048

/** A task that the open transaction has changed. */
interface ChangedTask {
  readonly row: StoredTaskRow
  /** The row in the file, if there is one. */
  readonly before: StoredTaskRow | undefined
  /** Its new snapshot, or null once it has ended; `undefined` if only events and messages were added. */
  snapshot: string | null | undefined
}

/** A context that the open transaction has changed. */
interface ChangedContext {
  readonly name: string
  readonly row: ContextRow
  readonly isNew: boolean
  /** Its changed tasks, by id. */
  readonly tasks: Map<string, ChangedTask>
}

/**
 * Writes the rows of commits. The caller opens the transaction, calls {@link CommitWriter.flush} before its end, and
 * {@link CommitWriter.forget} after a rollback. Rows of events and messages are written at once. Rows of contexts,
 * tasks and snapshots are written by `flush`, so that several commits of one task write them once.
 */
export class CommitWriter {
  readonly #tables: Tables
  readonly #journal: JournalWriter
  readonly #webhooks: WebhookWriter
  readonly #numbers: Numbers
  readonly #scopes = new LruCache<ScopeRow>(KEPT_ROWS)
  readonly #contexts = new LruCache<ContextRow>(KEPT_ROWS)
  readonly #tasks = new LruCache<StoredTaskRow>(KEPT_ROWS)
  readonly #changedContexts = new Map<string, ChangedContext>()
  readonly #find
  readonly #updateContext: (row: ContextRow) => void
  readonly #moveTask: (row: StoredTaskRow) => void
  readonly #updateTask: (row: StoredTaskRow) => void
  readonly #updateSnapshot: (row: SnapshotRow) => void
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
    this.#updateContext = tables.contexts.updating(['commits', 'atMs', 'tasks', 'messages', 'snapshot'], ['context'])
    this.#moveTask = tables.tasks.updating(
      ['state', 'time', 'statusAt', 'generation', 'messages', 'wakeAtMs', 'endedAtMs'],
      ['task']
    )
    this.#updateTask = tables.tasks.updating(['statusAt', 'generation', 'messages'], ['task'])
    this.#updateSnapshot = tables.snapshots.updating(['snapshot'], ['task'])
    this.#dropSnapshot = database.prepare('DELETE FROM snapshots WHERE task = ?')
    this.#dropSend = database.prepare('DELETE FROM sends WHERE scope = ? AND key = ?')
  }

  /**
   * Writes a commit and returns true; returns false if it lost its race. Throws A2AError, after a part, for damaged
   * rows.
   */
  write(commit: CommitRows): boolean {
    const { tenant, principal, contextId, expected, atMs, snapshot, log, journal } = commit
    const scope = this.#scopes.get(nameOf(tenant, principal), () => this.#find.scope.one(tenant, principal))
    const known = scope && this.#contextOf(scope, contextId)
    if ((known?.row.commits ?? 0) !== expected) return false
    const context = known ?? this.#newContext(scope ?? this.#newScope(tenant, principal), contextId)
    this.#changedContexts.set(context.name, context)
    this.#writeSends(context.row, commit)
    killPoint('sends written')
    for (const row of commit.tasks) this.#changeTask(context, row, atMs)
    for (const entry of log) this.#writeEntry(context, entry)
    killPoint('events written')
    Object.assign(context.row, { commits: expected + 1, atMs, snapshot })
    for (const row of journal) this.#journal.write(this.#taskIn(context, row.taskId), row)
    for (const webhook of commit.webhooks)
      this.#webhooks.writeWithMessage(this.#taskIn(context, storedText(webhook.taskId)), webhook)
    return true
  }

  /** Writes the contexts, tasks and snapshots that the transaction has changed. */
  flush(): void {
    for (const { name, row, isNew, tasks } of this.#changedContexts.values()) {
      if (isNew) this.#tables.contexts.insert(row)
      else this.#updateContext(row)
      this.#contexts.set(name, row)
      for (const task of tasks.values()) this.#writeTask(task)
    }
    this.#changedContexts.clear()
    killPoint('rows written')
  }

  /** Clears the caches after other writes or a rollback. */
  forget(): void {
    this.#scopes.clear()
    this.#contexts.clear()
    this.#tasks.clear()
    this.#changedContexts.clear()
    this.#numbers.forget()
  }

  #contextOf({ scope }: ScopeRow, contextId: string): ChangedContext | undefined {
    const name = `${scope}.${contextId}`
    const changed = this.#changedContexts.get(name)
    if (changed) return changed
    const row = this.#contexts.get(name, () =>
      reading(`Context ${originalText(contextId)}`, () => this.#find.context.one(scope, contextId))
    )
    return row && { name, row, isNew: false, tasks: new Map() }
  }

  #newScope(tenant: string, principal: string): ScopeRow {
    const row = { scope: this.#numbers.next('scope'), tenant, principal }
    this.#tables.scopes.insert(row)
    this.#scopes.set(nameOf(tenant, principal), row)
    return row
  }

  #newContext({ scope }: ScopeRow, contextId: string): ChangedContext {
    const row = {
      context: this.#numbers.next('context'),
      scope,
      contextId,
      commits: 0,
      atMs: 0,
      tasks: 0,
      messages: 0,
      snapshot: ''
    }
    return { name: `${scope}.${contextId}`, row, isNew: true, tasks: new Map() }
  }

  #writeSends({ scope, contextId }: ContextRow, { sends }: CommitRows): void {
    for (const row of sends) {
      this.#dropSend.run(scope, row.key)
      this.#tables.sends.insert({ ...row, scope, contextId })
    }
  }

  /** A task of a context; `undefined` for an unknown one or one of another context. */
  #taskIn({ row: { context }, isNew, tasks }: ChangedContext, taskId: string): StoredTaskRow | undefined {
    const changed = tasks.get(taskId)
    if (changed || isNew) return changed?.row
    const row = this.#tasks.get(taskId, () =>
      reading(`Task ${originalText(taskId)}`, () => this.#find.task.one(taskId))
    )
    return row?.context === context ? row : undefined
  }

  /** A task of a context, to be changed. */
  #changedIn(context: ChangedContext, taskId: string): ChangedTask | undefined {
    const known = context.tasks.get(taskId)
    const before = known ? undefined : this.#taskIn(context, taskId)
    if (!before) return known
    const changed: ChangedTask = { row: { ...before }, before, snapshot: undefined }
    context.tasks.set(taskId, changed)
    return changed
  }

  /** Applies a commit's row to its task. */
  #changeTask(
    context: ChangedContext,
    { taskId, state, generation, snapshot, wakeAtMs }: TaskColumns,
    atMs: number
  ): void {
    const changed = this.#changedIn(context, taskId) ?? this.#newTask(context, taskId)
    const endedAtMs = snapshot === null ? atMs : null
    Object.assign(changed.row, { state, generation, wakeAtMs, endedAtMs })
    changed.snapshot = snapshot
    if (snapshot === null) this.#journal.forget(changed.row)
  }

  #newTask({ row: context, tasks }: ChangedContext, taskId: string): ChangedTask {
    context.tasks += 1
    const { scope, contextId } = context
    const row = {
      task: this.#numbers.next('task'),
      scope,
      context: context.context,
      contextId,
      taskId,
      state: '',
      time: '',
      statusAt: 0,
      generation: 0,
      messages: 0,
      wakeAtMs: null,
      endedAtMs: null
    }
    const changed: ChangedTask = { row, before: undefined, snapshot: undefined }
    tasks.set(taskId, changed)
    return changed
  }

  #writeEntry(
    context: ChangedContext,
    { body, large, taskId, isMessage, generation, state, time, isTerm }: LogRow
  ): void {
    const task = taskId === undefined ? undefined : this.#changedIn(context, taskId)?.row
    if (task) task.generation = Math.max(task.generation, generation)
    if (isMessage) {
      context.row.messages += 1
      if (task) task.messages += 1
      return this.#tables.messages.insert({
        context: context.row.context,
        number: context.row.messages,
        task: task?.task ?? null,
        body,
        generation: generation === 0 ? null : generation
      })
    }
    if (!task) return
    this.#tables.events.insert({
      task: task.task,
      generation,
      isTerm: isTerm ? 1 : 0,
      body: large ? JSON.stringify(large) : body
    })
    if (state !== undefined) Object.assign(task, { state, time, statusAt: generation })
  }

  #writeTask({ row, before, snapshot }: ChangedTask): void {
    this.#tasks.set(row.taskId, row)
    if (!before) this.#tables.tasks.insert(row)
    else if (isPlacedAlike(row, before)) this.#updateTask(row)
    else this.#moveTask(row)
    if (snapshot === undefined) return
    const isThere = before?.endedAtMs === null
    if (snapshot === null) {
      if (isThere) this.#dropSnapshot.run(row.task)
    } else if (isThere) this.#updateSnapshot({ task: row.task, snapshot })
    else this.#tables.snapshots.insert({ task: row.task, snapshot })
  }
}

/** Whether no index changes. */
function isPlacedAlike(row: StoredTaskRow, before: StoredTaskRow): boolean {
  return (
    row.state === before.state &&
    row.time === before.time &&
    row.wakeAtMs === before.wakeAtMs &&
    row.endedAtMs === before.endedAtMs
  )
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
    this.#newest = {
      scope: newest('scope', 'scopes'),
      context: newest('context', 'contexts'),
      task: newest('task', 'tasks')
    }
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

/** Writes journals: a row replaces the one with its key, and a task's rows are deleted when it ends. */
class JournalWriter {
  readonly #tables: Tables
  readonly #find: Reading<JournalTableRow>
  readonly #change: (row: JournalTableRow) => void
  readonly #drop: Statement
  readonly #newest: Statement

  constructor(database: Database, tables: Tables) {
    this.#tables = tables
    this.#find = tables.journal.reading(['task', 'key'])
    this.#change = tables.journal.updating(['body'], ['entry'])
    this.#drop = database.prepare('DELETE FROM journal WHERE task = ?')
    this.#newest = database.prepare('SELECT max(entry) AS newest FROM journal')
  }

  /** Writes a row of a live task; ignores other tasks. */
  write(task: StoredTaskRow | undefined, { key, body }: { readonly key: string; readonly body: string }): void {
    if (!task || task.endedAtMs !== null) return
    const before = this.#find.one(task.task, key)
    if (before) this.#change({ ...before, body })
    else this.#tables.journal.insert({ entry: Number(this.#newest.get()?.newest) + 1, task: task.task, key, body })
  }

  /** Deletes the journal of a task. */
  forget({ task }: StoredTaskRow): void {
    this.#drop.run(task)
  }
}

/** The writer of a file: it has only one. */
const WRITER = 0

/** Adds counts of transitions. The caller opens the transaction. */
export class TransitionWriter {
  readonly #table: Tables['transitions']
  readonly #find: Reading<TransitionRow>
  readonly #drop: Statement

  constructor(database: Database, { transitions }: Tables) {
    const key = ['chart', 'previous', 'taken', 'writer'] as const
    this.#table = transitions
    this.#find = transitions.reading(key)
    this.#drop = database.prepare(`DELETE FROM transitions WHERE ${key.map(column => `${column} = ?`).join(' AND ')}`)
  }

  /** A damaged row begins again. */
  add({ counts, atMs }: CountChange): true {
    for (const { chart, count, timed, ms, ...names } of counts) {
      const [previous, transition] = [storedText(names.previous), storedText(names.taken)]
      const key = [chart, previous, transition, WRITER] as const
      const before = unlessDamaged(() => this.#find.one(...key)) ?? { count: 0, timed: 0, ms: 0 }
      this.#drop.run(...key)
      this.#table.insert({
        chart,
        previous,
        taken: transition,
        writer: WRITER,
        count: before.count + count,
        timed: before.timed + timed,
        ms: before.ms + ms,
        atMs
      })
    }
    return true
  }
}
