import { LruCache } from '../../../runtime/primitives/collections.ts'
import type { CommitRows } from '../../rows/commit-rows.ts'
import { damageError, originalText, storedText, unlessDamaged } from '../../rows/damage.ts'
import type { Session } from '../session/session.ts'
import {
  binaryArray,
  CONTEXT_COLUMNS,
  storedContextOf,
  contextNameOf,
  type PgContext,
  type PgTask,
  TASK_AT,
  TASK_COLUMNS,
  taskOf
} from './row-shapes.ts'

/** The size of each LRU cache of rows, so that the next commit of a context need not read them. */
const KEPT_ROWS = 4096

/** LATERAL, as in `read/statements.ts`. */
export const READ_CONTEXTS = {
  name: 'taskchart_known_contexts',
  text: `SELECT c.* FROM unnest($1::text[], $2::text[], $3::text[]) AS n (tenant, principal, context_id) CROSS JOIN LATERAL (
    SELECT ${CONTEXT_COLUMNS} FROM contexts WHERE contexts.tenant = n.tenant AND contexts.principal = n.principal AND contexts.context_id = n.context_id OFFSET 0) AS c`
}

const READ_TASKS = {
  name: 'taskchart_known_tasks',
  text: `SELECT ${TASK_COLUMNS} FROM tasks WHERE task_id = ANY ($1::text[])`
}

/** The rows that a batch of commits is based on. */
export interface BatchRows {
  readonly contexts: Map<string, PgContext>
  readonly tasks: Map<string, PgTask>
  /** The errors of damaged contexts and tasks, by the same names. */
  readonly damagedContexts: Map<string, Error>
  readonly damagedTasks: Map<string, Error>
}

/** A task, or a context, that was removed. Texts are in their stored form. */
export interface Removed {
  readonly tenant: string
  readonly principal: string
  readonly contextId: string
  readonly taskId: string | undefined
}

/**
 * The writer's view of contexts and tasks. Only the owner writes, so it need not read the rows that it has written.
 * Contexts and tasks that a commit opens count as new without a read. If one exists, the write fails as a whole, and
 * the commits are tried again with `careful`.
 */
export class KnownRows {
  readonly #contexts = new LruCache<PgContext>(KEPT_ROWS)
  readonly #tasks = new LruCache<PgTask>(KEPT_ROWS)

  /** The rows for these commits: cached ones, and others from the database. */
  async read(session: Session, commits: readonly CommitRows[], careful: boolean): Promise<BatchRows> {
    const rows: BatchRows = {
      contexts: new Map(),
      tasks: new Map(),
      damagedContexts: new Map(),
      damagedTasks: new Map()
    }
    const contexts = new Map<string, CommitRows>()
    const tasks = new Set<string>()
    for (const commit of commits) {
      const name = contextNameOf(commit.tenant, commit.principal, commit.contextId)
      const known = this.#contexts.get(name, () => undefined)
      if (known) rows.contexts.set(name, known)
      else if (careful || commit.expected !== 0) contexts.set(name, commit)
      const isNew = !known && commit.expected === 0
      for (const taskId of tasksIn(commit)) {
        const row = this.#tasks.get(taskId, () => undefined)
        if (row) rows.tasks.set(taskId, row)
        else if (careful || (!isNew && !opens(commit, taskId))) tasks.add(taskId)
      }
    }
    if (contexts.size > 0) await this.#readContexts(session, [...contexts.values()], rows)
    if (tasks.size > 0) await this.#readTasks(session, [...tasks], rows)
    return rows
  }

  /** Keeps the rows that were written. */
  keep(contexts: Iterable<PgContext>, tasks: Iterable<PgTask>): void {
    for (const row of contexts) this.#contexts.set(contextNameOf(row.tenant, row.principal, row.contextId), row)
    for (const row of tasks) this.#tasks.set(row.taskId, row)
  }

  /** Drops rows that a sweep has removed. */
  remove(removed: readonly Removed[]): void {
    for (const { tenant, principal, contextId, taskId } of removed) {
      if (taskId === undefined) this.#contexts.delete(contextNameOf(tenant, principal, contextId))
      else this.#tasks.delete(taskId)
    }
  }

  /** Clears the caches, after other writes or a failure. */
  forget(): void {
    this.#contexts.clear()
    this.#tasks.clear()
  }

  async #readContexts(
    session: Session,
    commits: readonly CommitRows[],
    { contexts, damagedContexts }: BatchRows
  ): Promise<void> {
    const names = (['tenant', 'principal', 'contextId'] as const).map(column =>
      binaryArray(
        'text',
        commits.map(commit => commit[column])
      )
    )
    for (const fields of await session.rows(READ_CONTEXTS, names)) {
      const [, , tenant, principal, contextId] = fields.map(String) as [string, string, string, string, string]
      const name = contextNameOf(tenant, principal, contextId)
      unlessDamaged(
        () => contexts.set(name, storedContextOf(fields).row),
        error => void damagedContexts.set(name, damageError(`Context ${originalText(contextId)}`, error))
      )
    }
  }

  async #readTasks(session: Session, taskIds: readonly string[], { tasks, damagedTasks }: BatchRows): Promise<void> {
    for (const fields of await session.rows(READ_TASKS, [binaryArray('text', taskIds)])) {
      const taskId = String(fields[TASK_AT.taskId])
      unlessDamaged(
        () => tasks.set(taskId, taskOf(fields)),
        error => void damagedTasks.set(taskId, damageError(`Task ${originalText(taskId)}`, error))
      )
    }
  }
}

/** Every task that a commit names. */
export function tasksIn({ tasks, log, journal, webhooks }: CommitRows): Set<string> {
  const ids = new Set<string>()
  for (const { taskId } of tasks) ids.add(taskId)
  for (const { taskId } of log) if (taskId !== undefined) ids.add(taskId)
  for (const { taskId } of journal) ids.add(taskId)
  for (const { taskId } of webhooks) ids.add(storedText(taskId))
  return ids
}

/** Whether a commit has the first event of a task. */
function opens({ tasks, log }: CommitRows, taskId: string): boolean {
  return (
    tasks.some(row => row.taskId === taskId) && log.some(entry => entry.taskId === taskId && entry.generation === 1)
  )
}

/** The length of a block: the increment of the sequence `numbers`. */
const BLOCK = 1_048_576

/** The number of unused numbers from which on the next block is reserved: more than a batch needs. */
const RESERVE = 262_144

const NEXT_BLOCK = { name: 'taskchart_numbers', text: `SELECT nextval('numbers')` }

/** Numbers for new contexts and tasks: ascending, from blocks that no other process gets. */
export class Numbers {
  #next = 0
  #end = 0

  /** Takes a new block if the last one is nearly used up. */
  async refill(session: Session): Promise<void> {
    if (this.#end - this.#next > RESERVE) return
    const [[first] = []] = await session.rows(NEXT_BLOCK)
    this.#next = Number(first)
    this.#end = this.#next + BLOCK
  }

  /** Drops the block: another owner may have reserved later ones since. */
  forget(): void {
    this.#next = this.#end
  }

  next(): number {
    this.#next += 1
    return this.#next - 1
  }
}
