import { createHash } from 'node:crypto'
import { type Ids, randomIds } from '../../runtime/ports/ids.ts'
import { NOT_OWNER, type ContextKey, type Store } from '../../runtime/store/store.ts'
import { shardOf } from '../postgres/write/row-shapes.ts'
import { definitionsIn } from '../rows/definition-rows.ts'

/** The shards of a database, and those of this node. */
export class Shards {
  readonly count: number
  readonly #ids: Ids
  /** The shards whose contexts are restored here. */
  readonly #owned = new Set<number>()
  /** The shards that are handed over: running work still ends its commits. */
  readonly #giving = new Set<number>()

  constructor(count: number, ids: Ids = randomIds) {
    this.count = count
    this.#ids = ids
  }

  /** The shards of this node. */
  get owned(): number[] {
    return [...this.#owned]
  }

  has(shard: number): boolean {
    return this.#owned.has(shard)
  }

  add(shards: readonly number[]): void {
    for (const shard of shards) this.#owned.add(shard)
  }

  /** From now on, nothing new begins in these shards, and commits are still written. */
  give(shards: readonly number[]): void {
    this.remove(shards)
    for (const shard of shards) this.#giving.add(shard)
  }

  /** From now on, nothing is written to these shards. */
  remove(shards: readonly number[]): void {
    for (const shard of shards) {
      this.#owned.delete(shard)
      this.#giving.delete(shard)
    }
  }

  of(key: ContextKey): number {
    return shardOf(key, this.count)
  }

  /** The shard of a text, such as the key of a message. */
  ofText(text: string): number {
    return createHash('sha256').update(text).digest().readUInt32BE(0) % this.count
  }

  /** The shard in a task's id; `undefined` for an id from before the cluster. */
  ofTask(taskId: string): number | undefined {
    const [, end] = /~(0|[1-9]\d{0,5})$/.exec(taskId) ?? []
    return end !== undefined && Number(end) < this.count ? Number(end) : undefined
  }

  /** A new id in a shard. */
  idIn(shard: number): string {
    return `${this.#ids()}~${shard}`
  }

  /** Whether a task may be of one of these shards. */
  mayBeIn(shards: readonly number[], taskId: string): boolean {
    const shard = this.ofTask(taskId)
    return shard === undefined || shards.includes(shard)
  }

  /**
   * The store as this node may use it: wakes and open webhooks are those of its shards, and commits to others are
   * refused with `NOT_OWNER`.
   */
  viewOf(store: Store): Store {
    const commit: Store['commit'] = commit => {
      const shard = this.of(commit.key)
      return this.#owned.has(shard) || this.#giving.has(shard) ? store.commit(commit) : Promise.reject(NOT_OWNER)
    }
    return {
      ...store,
      commit,
      ...definitionsIn({ ...store, commit }),
      readWakes: async (limit, after) =>
        this.#owned.size === 0
          ? []
          : pages(
              limit,
              after,
              from => store.readWakes(limit, from),
              async ({ key }) => this.#owned.has(this.of(key)),
              ({ atMs, taskId }) => ({ atMs, taskId })
            ),
      readOpenWebhooks: async (limit, after) =>
        this.#owned.size === 0
          ? []
          : pages(
              limit,
              after,
              from => store.readOpenWebhooks(limit, from),
              async ({ scope, row: { taskId } }) => {
                const stored =
                  this.ofTask(taskId) === undefined
                    ? await store.readTask(scope, taskId, { historyLength: 0, artifacts: false })
                    : undefined
                const shard = stored ? this.of({ ...scope, contextId: stored.task.contextId }) : this.ofTask(taskId)
                return shard !== undefined && this.#owned.has(shard)
              },
              ({ place }) => place
            )
    }
  }
}

/** A page of the rows that match, from as many pages as it takes: a page that is not full is the last. */
async function pages<Row, Cursor>(
  limit: number,
  after: Cursor,
  read: (after: Cursor) => Promise<Row[]>,
  matches: (row: Row) => Promise<boolean>,
  cursorOf: (row: Row) => Cursor
): Promise<Row[]> {
  const found: Row[] = []
  let from = after
  for (;;) {
    const page = await read(from)
    for (const row of page) {
      if (await matches(row)) found.push(row)
      if (found.length === limit) return found
    }
    if (page.length < limit) return found
    from = cursorOf(page.at(-1) as Row)
  }
}
