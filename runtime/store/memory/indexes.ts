import { isTerminal, type TaskState } from '../../../machines/protocol/states.ts'
import { fitting } from '../rows.ts'
import type { TaskCursor, TaskQuery } from '../store.ts'
import type { TaskRecord } from '../task-record.ts'

/** Maximum entries of one chunk. */
const CHUNK = 512

/** Position in a {@link TimeIndex}. An empty id is before all others of the same time. */
interface TimePlace {
  readonly atMs: number
  readonly id: string
}

/**
 * Index of entries by time, then by id. It consists of short sorted chunks, so that an insertion or deletion moves few
 * entries. The time and id of an entry must not change while it is in the index.
 */
export class TimeIndex<Entry> {
  readonly #chunks: Entry[][] = []
  readonly #timeOf: (entry: Entry) => number
  readonly #idOf: (entry: Entry) => string

  constructor(timeOf: (entry: Entry) => number, idOf: (entry: Entry) => string) {
    this.#timeOf = timeOf
    this.#idOf = idOf
  }

  add(entry: Entry): void {
    const at = this.#placeOf(entry)
    const index = Math.min(this.#chunkOf(at), this.#chunks.length - 1)
    const chunk = this.#chunks[index]
    if (!chunk) {
      this.#chunks.push([entry])
      return
    }
    chunk.splice(this.#slotIn(chunk, at), 0, entry)
    if (chunk.length > CHUNK) this.#chunks.splice(index + 1, 0, chunk.splice(CHUNK / 2))
  }

  /** Deletes the entry at a position, if there is one. */
  delete(at: TimePlace): void {
    const index = this.#chunkOf(at)
    const chunk = this.#chunks[index] ?? []
    const slot = this.#slotIn(chunk, at)
    const found = chunk[slot]
    if (!found || this.#compare(found, at) !== 0) return
    chunk.splice(slot, 1)
    if (chunk.length === 0) this.#chunks.splice(index, 1)
  }

  /** The first entries after a position, at most `limit`. */
  read(limit: number, after: TimePlace): Entry[] {
    const entries: Entry[] = []
    for (let index = this.#chunkOf(after); entries.length < limit; index += 1) {
      const chunk = this.#chunks[index]
      if (!chunk) break
      entries.push(...chunk.filter(entry => this.#compare(entry, after) > 0).slice(0, limit - entries.length))
    }
    return entries
  }

  /** The first entries before a time, at most `limit`. */
  readBefore(limit: number, beforeMs: number): Entry[] {
    const entries = this.read(limit, { atMs: -Infinity, id: '' })
    return entries.slice(0, this.#slotIn(entries, { atMs: beforeMs, id: '' }))
  }

  /** Index of the first chunk whose last entry is not before this position. */
  #chunkOf(at: TimePlace): number {
    let from = 0
    for (let to = this.#chunks.length; from < to;) {
      const middle = (from + to) >> 1
      if (this.#compare(this.#chunks[middle]?.at(-1) as Entry, at) >= 0) to = middle
      else from = middle + 1
    }
    return from
  }

  #slotIn(chunk: readonly Entry[], at: TimePlace): number {
    let from = 0
    for (let to = chunk.length; from < to;) {
      const middle = (from + to) >> 1
      if (this.#compare(chunk[middle] as Entry, at) >= 0) to = middle
      else from = middle + 1
    }
    return from
  }

  #placeOf(entry: Entry): TimePlace {
    return { atMs: this.#timeOf(entry), id: this.#idOf(entry) }
  }

  #compare(entry: Entry, at: TimePlace): number {
    const atMs = this.#timeOf(entry)
    if (atMs !== at.atMs) return atMs - at.atMs
    const id = this.#idOf(entry)
    if (id === at.id) return 0
    return id < at.id ? -1 : 1
  }
}

/**
 * Index of tasks by state, sorted by status time within each, so that a page of ListTasks is a slice. It costs one list
 * element per task.
 */
export class StatusOrder<Record extends TaskRecord> {
  /** Oldest first, because most changes are at the newest end. */
  readonly #lists = new Map<TaskState, Record[]>()

  /** Adds a task at the position of its status. */
  add(task: Record): void {
    const { state } = task.status
    const list = this.#lists.get(state)
    if (!list) return void this.#lists.set(state, [task])
    const index = countOlder(list, timeOf(task), task.taskId)
    if (index === list.length) list.push(task)
    else list.splice(index, 0, task)
  }

  /** Removes a task, which must still have the status with which it was added. */
  remove(task: Record): void {
    const list = this.#lists.get(task.status.state) ?? []
    const index = countOlder(list, timeOf(task), task.taskId)
    if (list[index] === task) list.splice(index, 1)
  }

  /** Number of tasks that have not ended. */
  get open(): number {
    let open = 0
    for (const [state, list] of this.#lists) if (!isTerminal(state)) open += list.length
    return open
  }

  /** Adds the numbers of tasks that have not ended. */
  countOpen(counts: { [State in TaskState]?: number }): void {
    for (const [state, list] of this.#lists) if (!isTerminal(state)) counts[state] = (counts[state] ?? 0) + list.length
  }

  /** One page of tasks, the total number of matches, and the position of the next page. Ignores `contextId`. */
  page(
    { state, since = '', after, limit, bytes }: TaskQuery,
    bytesOf: (task: Record) => number
  ): { tasks: Record[]; total: number; next?: TaskCursor } {
    let total = 0
    const newest: Record[] = []
    for (const [ofState, list] of this.#lists) {
      if (state !== undefined && state !== ofState) continue
      const first = countOlder(list, since, '')
      const end = after ? countOlder(list, after.timestamp, after.taskId) : list.length
      total += list.length - first
      for (const task of list.slice(Math.max(first, end - limit - 1), end)) newest.push(task)
    }
    const tasks = fitting(newest.toSorted(latestFirst).slice(0, limit), bytes, bytesOf)
    const last = tasks.at(-1)
    return {
      tasks,
      total,
      ...(last && newest.length > tasks.length && { next: { timestamp: timeOf(last), taskId: last.taskId } })
    }
  }
}

/** Comparator: the task with the latest status comes first. */
export function latestFirst(one: TaskRecord, other: TaskRecord): number {
  return compare(other, timeOf(one), one.taskId)
}

function timeOf({ status }: TaskRecord): string {
  return status.timestamp ?? ''
}

/**
 * Number of tasks older than a position, which is the position's index. Galloping search from the newest end, then
 * binary search.
 */
function countOlder(list: readonly TaskRecord[], timestamp: string, taskId: string): number {
  const isOlder = (index: number) => {
    const task = list[index]
    return task !== undefined && compare(task, timestamp, taskId) < 0
  }
  let high = list.length
  let low = high
  for (let step = 1; low > 0; step *= 2) {
    low = Math.max(0, high - step)
    if (isOlder(low)) break
    high = low
  }
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isOlder(middle)) low = middle + 1
    else high = middle
  }
  return high
}

function compare(task: TaskRecord, timestamp: string, taskId: string): number {
  const time = timeOf(task)
  if (time !== timestamp) return time < timestamp ? -1 : 1
  return task.taskId < taskId ? -1 : 1
}
