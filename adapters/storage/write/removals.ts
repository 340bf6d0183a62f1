import { killPoint } from '../../../runtime/primitives/kill-points.ts'
import type { SweepBounds, Erasure } from '../../../runtime/store/store.ts'
import { storedText, unlessDamaged } from '../../rows/damage.ts'
import type { Database, Statement } from '../driver.ts'
import type { ContextRow, Tables } from '../tables.ts'

type Numbers = readonly Record<string, unknown>[]

/** Removes expired rows, and rows to erase. The caller opens the transaction. */
export class Removals {
  readonly #find
  readonly #size
  readonly #drop
  readonly #changeContext: (row: ContextRow) => void

  constructor(database: Database, { tasks, contexts }: Tables) {
    const drop = (table: string, column: string) => database.prepare(`DELETE FROM ${table} WHERE ${column} = ?`)
    this.#find = {
      task: tasks.reading(['task']),
      context: contexts.reading(['context']),
      ended: database.prepare(
        'SELECT task FROM tasks WHERE endedAtMs IS NOT NULL AND endedAtMs < ? ORDER BY endedAtMs LIMIT ?'
      ),
      idle: database.prepare('SELECT context, scope FROM contexts WHERE tasks = 0 AND atMs < ? ORDER BY atMs LIMIT ?'),
      expired: database.prepare('SELECT scope, key FROM sends WHERE expiresAtMs < ? ORDER BY expiresAtMs LIMIT ?'),
      scope: database.prepare('SELECT scope FROM scopes WHERE tenant = ? AND principal = ?'),
      contexts: database.prepare('SELECT context FROM contexts WHERE scope = ?'),
      contextNamed: database.prepare('SELECT context FROM contexts WHERE scope = ? AND contextId = ?'),
      tasksOf: database.prepare('SELECT task FROM tasks WHERE context = ?'),
      anySend: database.prepare('SELECT 1 FROM sends WHERE scope = ? LIMIT 1'),
      sendsNamed: database.prepare('SELECT scope, key FROM sends WHERE scope = ? AND contextId = ?'),
      sends: database.prepare('SELECT scope, key FROM sends WHERE scope = ?')
    }
    // The text that a task or context removes, in bytes.
    this.#size = {
      ofTask: database.prepare(
        'SELECT (SELECT total(octet_length(body)) FROM events WHERE task = ?) + (SELECT total(octet_length(body)) FROM messages WHERE task = ?) AS bytes'
      ),
      ofContext: database.prepare('SELECT total(octet_length(body)) AS bytes FROM messages WHERE context = ?')
    }
    this.#drop = {
      events: drop('events', 'task'),
      snapshot: drop('snapshots', 'task'),
      journal: drop('journal', 'task'),
      messagesOfTask: drop('messages', 'task'),
      webhooks: drop('webhooks', 'task'),
      task: drop('tasks', 'task'),
      messages: drop('messages', 'context'),
      context: drop('contexts', 'context'),
      scope: drop('scopes', 'scope'),
      send: database.prepare('DELETE FROM sends WHERE scope = ? AND key = ?'),
      transitions: database.prepare(
        'DELETE FROM transitions WHERE chart IN (SELECT chart FROM transitions GROUP BY chart HAVING max(atMs) < ?)'
      )
    }
    this.#changeContext = contexts.updating(['tasks'], ['context'])
  }

  /**
   * Removes expired rows: at most `limit`, and about `bytes` of text. Returns the number of tasks, contexts and sends.
   */
  sweep({ endedBeforeMs, idleBeforeMs, sendsBeforeMs }: SweepBounds, limit: number, bytes: number): number {
    this.#drop.transitions.run(endedBeforeMs)
    let left = bytes
    let removed = 0
    const remaining = () => (left > 0 ? limit - removed : 0)
    for (const { task } of this.#find.ended.all(endedBeforeMs, remaining())) {
      if (remaining() === 0) break
      left -= Number(this.#size.ofTask.get(Number(task), Number(task))?.bytes)
      this.#sweepTask(Number(task))
      removed += 1
    }
    const scopes = new Set<number>()
    for (const { context, scope } of this.#find.idle.all(idleBeforeMs, remaining())) {
      if (remaining() === 0) break
      left -= Number(this.#size.ofContext.get(Number(context))?.bytes)
      this.#dropContext(Number(context))
      scopes.add(Number(scope))
      removed += 1
    }
    const sends = this.#find.expired.all(sendsBeforeMs, remaining())
    this.#dropSends(sends)
    for (const { scope } of sends) scopes.add(Number(scope))
    for (const scope of scopes) this.#dropScopeIfEmpty(scope)
    killPoint('before sweep')
    return removed + sends.length
  }

  /** Removes everything of a context or scope. Returns whether there was anything. */
  erase({ tenant, principal, contextId }: Erasure): boolean {
    const scope = this.#find.scope.get(storedText(tenant), storedText(principal))?.scope
    if (typeof scope !== 'number') return false
    const named = contextId === undefined ? [scope] : [scope, storedText(contextId)]
    const contexts = (contextId === undefined ? this.#find.contexts : this.#find.contextNamed).all(...named)
    for (const { context } of contexts) this.#dropContext(Number(context))
    const sends = (contextId === undefined ? this.#find.sends : this.#find.sendsNamed).all(...named)
    this.#dropSends(sends)
    this.#dropScopeIfEmpty(scope)
    return contexts.length + sends.length > 0
  }

  #sweepTask(task: number): void {
    const context = unlessDamaged(() => {
      const row = this.#find.task.one(task)
      return row && this.#find.context.one(row.context)
    })
    this.#dropTask(task)
    if (context) this.#changeContext({ ...context, tasks: context.tasks - 1 })
  }

  #dropTask(task: number): void {
    for (const statement of [
      this.#drop.events,
      this.#drop.snapshot,
      this.#drop.journal,
      this.#drop.messagesOfTask,
      this.#drop.webhooks,
      this.#drop.task
    ])
      statement.run(task)
  }

  #dropContext(context: number): void {
    for (const { task } of this.#find.tasksOf.all(context)) this.#dropTask(Number(task))
    this.#drop.messages.run(context)
    this.#drop.context.run(context)
  }

  #dropSends(sends: Numbers): void {
    for (const { scope, key } of sends) this.#drop.send.run(Number(scope), String(key))
  }

  #dropScopeIfEmpty(scope: number): void {
    const isUsed = [this.#find.contexts, this.#find.anySend].some((statement: Statement) => statement.get(scope))
    if (!isUsed) this.#drop.scope.run(scope)
  }
}
