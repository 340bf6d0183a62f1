import type { WebhookProgress, WebhookRow } from '../../../runtime/store/rows.ts'
import type { CommitRows, LogRow, TaskColumns } from '../../rows/commit-rows.ts'
import { originalText, storedText, checksumOf } from '../../rows/damage.ts'
import { tasksIn, type BatchRows, type Numbers } from './known-rows.ts'
import {
  hashOf,
  isSameTask,
  nameKeyOf,
  contextNameOf,
  shardOf,
  sumOfContext,
  sumOfTask,
  type PgContext,
  type PgTask
} from './row-shapes.ts'
import type { KnownWebhooks } from './webhook-rows.ts'
import { WriteGroups } from './write-groups.ts'

/** The parts that the batches of a writer share, and the webhooks of one batch. */
export interface BatchServices {
  readonly numbers: Numbers
  readonly webhooks: KnownWebhooks
  /** The number of shards of the database. */
  readonly shards: number
  /** The slot in which this process counts tasks. */
  readonly slot: number
}

interface Changed<Row> {
  readonly row: Row
  readonly before: Row | undefined
}

/**
 * The changes of several commits, applied in order to the rows that the owner knows. Only the last form of a context,
 * task or snapshot is written, so one batch may have many commits of a context. A task and a snapshot that have not
 * changed are not written: a step of work changes neither. A commit that cannot be applied leaves no trace.
 */
export class PostgresBatch {
  readonly #rows: BatchRows
  readonly #services: BatchServices
  readonly #groups = new WriteGroups()
  readonly #contexts = new Map<string, Changed<PgContext> & { snapshot: string }>()
  readonly #tasks = new Map<string, Changed<PgTask>>()
  /** The new snapshot of a task; null when it ends. */
  readonly #snapshots = new Map<string, string | null>()
  readonly #journal = new Map<string, { readonly task: PgTask; readonly name: string; readonly body: string }>()
  readonly #sends = new Map<string, readonly (string | number)[]>()
  readonly #counts = new Map<
    string,
    { readonly tenant: string; readonly principal: string; readonly state: string; difference: number }
  >()

  constructor(rows: BatchRows, services: BatchServices) {
    this.#rows = rows
    this.#services = services
  }

  /** Adds a commit and returns true; returns false if it lost its race. Throws A2AError for damaged rows. */
  add(commit: CommitRows): boolean {
    const name = contextNameOf(commit.tenant, commit.principal, commit.contextId)
    const { damagedContexts, damagedTasks } = this.#rows
    const damage =
      damagedContexts.get(name) ??
      (damagedTasks.size > 0 ? [...tasksIn(commit)].map(id => damagedTasks.get(id)).find(Boolean) : undefined)
    if (damage) throw damage
    const known = this.#contexts.get(name)
    const before = known?.before ?? (known ? undefined : this.#rows.contexts.get(name))
    const now = known?.row ?? before
    if ((now?.commits ?? 0) !== commit.expected) return false
    if (now) this.#checkWebhooks(now, commit)
    const context = now ? { ...now } : this.#newContext(commit)
    Object.assign(context, { commits: commit.expected + 1, atMs: commit.atMs })
    for (const row of commit.tasks) this.#putTask(context, row, commit.atMs)
    for (const entry of commit.log) this.#putEntry(context, entry)
    for (const { taskId, key, body } of commit.journal) this.#putJournal(this.#taskIn(context, taskId), key, body)
    for (const { key, expiresAtMs, body } of commit.sends) this.#putSend(context, key, expiresAtMs, body)
    for (const webhook of commit.webhooks) this.#putWebhook(this.#taskIn(context, storedText(webhook.taskId)), webhook)
    this.#contexts.set(name, { row: context, before, snapshot: commit.snapshot })
    return true
  }

  /** Everything to be written. */
  groups(): WriteGroups {
    const groups = this.#groups
    // In ascending order, as a sweep locks contexts: neither waits for the other in a circle.
    for (const { row, before, snapshot } of [...this.#contexts.values()].toSorted(
      (a, b) => a.row.context - b.row.context
    )) {
      const { context, shard, tenant, principal, contextId, commits, atMs, tasks, messages } = row
      groups.add(
        'contexts',
        before?.commits ?? 0,
        context,
        shard,
        tenant,
        principal,
        contextId,
        commits,
        atMs,
        tasks - (before?.tasks ?? 0),
        messages,
        snapshot,
        sumOfContext(row, snapshot)
      )
    }
    for (const { row, before } of this.#tasks.values()) this.#writeTask(row, before)
    for (const [taskId, snapshot] of this.#snapshots) this.#writeSnapshot(taskId, snapshot)
    for (const { task, name, body } of this.#journal.values()) {
      const key = nameKeyOf(name)
      groups.add('journal', task.task, key, name, body, checksumOf([task.task, key, name, body]))
    }
    this.#services.webhooks.write(groups)
    for (const cells of this.#sends.values()) groups.add('sends', ...cells, checksumOf(cells))
    for (const { tenant, principal, state, difference } of this.#counts.values()) {
      if (difference !== 0) groups.add('counters', tenant, principal, state, this.#services.slot, difference)
    }
    return groups
  }

  /** The shards of everything that is written. */
  get shards(): Set<number> {
    return new Set(Array.from(this.#contexts.values(), ({ row }) => row.shard))
  }

  /** The new form of every row that was written. */
  get written(): { contexts: PgContext[]; tasks: PgTask[] } {
    return {
      contexts: Array.from(this.#contexts.values(), ({ row }) => row),
      tasks: Array.from(this.#tasks.values(), ({ row }) => row)
    }
  }

  #newContext({ tenant, principal, contextId }: CommitRows): PgContext {
    const key = { tenant: originalText(tenant), principal: originalText(principal), contextId: originalText(contextId) }
    return {
      context: this.#services.numbers.next(),
      shard: shardOf(key, this.#services.shards),
      tenant,
      principal,
      contextId,
      commits: 0,
      atMs: 0,
      tasks: 0,
      messages: 0
    }
  }

  /** A task of a context; `undefined` for an unknown one or one of another context. */
  #taskIn({ context }: PgContext, taskId: string): PgTask | undefined {
    const row = this.#tasks.get(taskId)?.row ?? this.#rows.tasks.get(taskId)
    return row?.context === context ? row : undefined
  }

  /** Throws DamagedRow for a webhook that the commit would change. */
  #checkWebhooks(context: PgContext, { webhooks }: CommitRows): void {
    for (const { taskId, id } of webhooks) {
      const task = this.#taskIn(context, storedText(taskId))
      if (task) this.#services.webhooks.find(task.task, nameKeyOf(storedText(id)))
    }
  }

  /** A copy of a task's row, to be changed and written. */
  #changed(context: PgContext, taskId: string): PgTask | undefined {
    const known = this.#tasks.get(taskId)
    if (known?.row.context === context.context) return known.row
    const before = this.#taskIn(context, taskId)
    if (!before) return undefined
    const row = { ...before }
    this.#tasks.set(taskId, { row, before })
    return row
  }

  #putTask(context: PgContext, { taskId, state, generation, snapshot, wakeAtMs }: TaskColumns, atMs: number): void {
    const row = this.#changed(context, taskId) ?? this.#newTask(context, taskId)
    if (snapshot === null)
      for (const [key, { task }] of this.#journal) if (task.task === row.task) this.#journal.delete(key)
    Object.assign(row, { state, generation, wakeAtMs, endedAtMs: snapshot === null ? atMs : null })
    this.#snapshots.set(taskId, snapshot)
  }

  #newTask(context: PgContext, taskId: string): PgTask {
    const { shard, tenant, principal, contextId } = context
    const row: PgTask = {
      context: context.context,
      task: this.#services.numbers.next(),
      shard,
      tenant,
      principal,
      contextId,
      taskId,
      state: '',
      time: '',
      statusAt: 0,
      generation: 0,
      messages: 0,
      bytes: 0,
      wakeAtMs: null,
      endedAtMs: null
    }
    context.tasks += 1
    this.#tasks.set(taskId, { row, before: undefined })
    return row
  }

  #putEntry(
    context: PgContext,
    { body: given, large, isMessage, generation, taskId, state, time, isTerm }: LogRow
  ): void {
    const body = large ? JSON.stringify(large) : given
    const task = taskId === undefined ? undefined : this.#changed(context, taskId)
    if (task) {
      task.bytes += Buffer.byteLength(body)
      task.generation = Math.max(task.generation, generation)
    }
    if (isMessage) {
      context.messages += 1
      if (task) task.messages += 1
      const cells = [context.context, context.messages, task?.task ?? null, body]
      return this.#groups.add('messages', ...cells, checksumOf(cells), generation === 0 ? null : generation)
    }
    if (!task) return
    const cells = [task.task, generation, isTerm, body]
    this.#groups.add('events', ...cells, checksumOf(cells))
    if (state !== undefined) Object.assign(task, { state, time, statusAt: generation })
  }

  /** Writes a row of a live task; ignores other tasks. */
  #putJournal(task: PgTask | undefined, name: string, body: string): void {
    if (!task || task.endedAtMs !== null) return
    this.#journal.set(`${task.task} ${name}`, { task, name, body })
  }

  #putSend({ tenant, principal, contextId, shard }: PgContext, name: string, expiresAtMs: number, body: string): void {
    const key = nameKeyOf(name)
    this.#sends.set(contextNameOf(tenant, principal, key), [
      tenant,
      principal,
      key,
      contextId,
      shard,
      expiresAtMs,
      body
    ])
  }

  #putWebhook(task: PgTask | undefined, { told: generation, ...webhook }: CommitRows['webhooks'][number]): void {
    if (!task) return
    const key = nameKeyOf(storedText(webhook.id))
    const before = this.#services.webhooks.progressOf(task.task, key)
    const progress: WebhookProgress = { told: before?.told ?? generation, tries: 0 }
    this.#services.webhooks.put({
      shard: task.shard,
      context: task.context,
      task: task.task,
      key,
      isOpen: true,
      body: JSON.stringify({ ...webhook, progress } satisfies WebhookRow)
    })
  }

  #writeTask(row: PgTask, before: PgTask | undefined): void {
    if (before && isSameTask(row, before)) return
    const {
      context,
      task,
      shard,
      tenant,
      principal,
      contextId,
      taskId,
      state,
      time,
      statusAt,
      generation,
      messages,
      bytes,
      wakeAtMs,
      endedAtMs
    } = row
    this.#groups.add(
      'tasks',
      before === undefined,
      context,
      task,
      shard,
      tenant,
      principal,
      contextId,
      taskId,
      state,
      time,
      statusAt,
      generation,
      messages,
      bytes,
      wakeAtMs,
      endedAtMs,
      sumOfTask(row)
    )
    if (before?.state === state) return
    if (before) this.#count(row, before.state, -1)
    this.#count(row, state, 1)
  }

  #count({ tenant, principal }: PgTask, state: string, difference: number): void {
    const name = contextNameOf(tenant, principal, state)
    const known = this.#counts.get(name)
    if (known) known.difference += difference
    else this.#counts.set(name, { tenant, principal, state, difference })
  }

  #writeSnapshot(taskId: string, snapshot: string | null): void {
    const { row, before } = this.#tasks.get(taskId) as Changed<PgTask>
    const wasLive = before !== undefined && before.endedAtMs === null
    if (snapshot === null) {
      if (wasLive) this.#groups.add('ended', row.task)
      return
    }
    row.snapshotHash = hashOf(snapshot)
    if (wasLive && before.snapshotHash === row.snapshotHash) return
    const sum = checksumOf([row.task, snapshot])
    if (wasLive) this.#groups.add('changedSnapshots', row.task, snapshot, sum)
    else this.#groups.add('newSnapshots', row.task, row.context, snapshot, sum)
  }
}
