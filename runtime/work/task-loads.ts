import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import type { Limits } from '../access/limits.ts'
import { type Owner, SharedLimit } from '../access/shares.ts'
import type { Clock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import { SerialQueue } from '../primitives/event-loop.ts'
import type { WorkStore } from '../store/retrying-reads.ts'
import type { Scope } from '../store/rows.ts'
import type { TaskSize } from '../store/store.ts'
import { LARGE_BYTES, readWhole } from '../streams/task-stream.ts'

/** Memory limit of the process for loaded tasks, in multiples of `limits.referencedBytes`. */
const FULL_WORKS = 16

/** Other tasks for a work: those that were loaded, and the ids of those that were not. */
interface LoadedTasks {
  readonly tasks: Task[]
  readonly unloaded: string[]
}

type LoadingServices = { readonly store: WorkStore; readonly limits: Limits; readonly logger: Logger }

/**
 * Limits the memory for other tasks that are loaded for work. Each work has `limits.referencedTasks` and
 * `limits.referencedBytes`; all works of the process have 16 times `limits.referencedBytes`, of which each principal
 * has a share (`limits.principalShare`).
 */
export class TaskLoads {
  readonly services: LoadingServices
  /** Bytes loaded for all works. */
  readonly shares: SharedLimit
  /** Runs one large load at a time. */
  readonly large = new SerialQueue()

  constructor(services: LoadingServices) {
    this.services = services
    this.shares = new SharedLimit(services.limits.referencedBytes * FULL_WORKS, services.limits)
  }

  /** The loads of one work. */
  of(scope: Scope): WorkLoads {
    return new WorkLoads(this, scope)
  }
}

/** Tasks loaded for one work. Their memory is counted until the work ends or leaves memory. */
export class WorkLoads {
  readonly #loads: TaskLoads
  readonly #scope: Scope
  readonly #owner: Owner
  /** Bytes of the tasks in the work's input. */
  #given = 0
  /** Bytes of each task that the work has waited for. */
  readonly #awaited = new Map<string, number>()
  #isReleased = false

  constructor(loads: TaskLoads, scope: Scope) {
    this.#loads = loads
    this.#scope = scope
    this.#owner = { user: `${scope.tenant.length}.${scope.tenant}${scope.principal}` }
  }

  /** Loads the tasks that fit, in this order. A task whose stored data is damaged is not loaded. */
  async load(found: readonly TaskSize[]): Promise<LoadedTasks> {
    const chosen = this.#choose(found)
    const tasks = await this.#read(chosen)
    const ids = new Set(tasks.map(({ id }) => id))
    return { tasks, unloaded: found.flatMap(({ taskId }) => (ids.has(taskId) ? [] : [taskId])) }
  }

  /**
   * Loads a task that the work has awaited; `undefined` if it has been removed. All awaited tasks of a work have
   * `limits.referencedBytes` together. Rejects with RateLimited if the task does not fit.
   */
  async loadAwaited({ taskId, bytes }: TaskSize): Promise<Task | undefined> {
    const { store, limits } = this.#loads.services
    const more = bytes - (this.#awaited.get(taskId) ?? 0)
    const sum = [...this.#awaited.values()].reduce((all, each) => all + each, more)
    if (sum > limits.referencedBytes || this.#loads.shares.exceeded(this.#owner, more)) throw taskNotLoadable(taskId)
    if (!this.#isReleased) {
      this.#awaited.set(taskId, bytes)
      this.#loads.shares.add(this.#owner, more)
    }
    const read = () => readWhole(store, this.#scope, taskId)
    const stored = await (bytes > LARGE_BYTES ? this.#loads.large.run(read) : read())
    return stored?.task
  }

  /** Releases the counted memory. May be called twice. */
  release(): void {
    this.#isReleased = true
    let bytes = this.#given
    for (const each of this.#awaited.values()) bytes += each
    this.#loads.shares.add(this.#owner, -bytes)
    this.#given = 0
    this.#awaited.clear()
  }

  /** Chooses the tasks that fit, and counts their memory. */
  #choose(found: readonly TaskSize[]): TaskSize[] {
    const { referencedTasks, referencedBytes } = this.#loads.services.limits
    const chosen: TaskSize[] = []
    for (const task of found) {
      if (chosen.length === referencedTasks || this.#isReleased) break
      if (this.#given + task.bytes > referencedBytes || this.#loads.shares.exceeded(this.#owner, task.bytes)) continue
      this.#given += task.bytes
      this.#loads.shares.add(this.#owner, task.bytes)
      chosen.push(task)
    }
    return chosen
  }

  async #read(chosen: readonly TaskSize[]): Promise<Task[]> {
    if (bytesOf(chosen) <= LARGE_BYTES)
      return (await Promise.all(chosen.map(({ taskId }) => this.#readOne(taskId)))).flat()
    return this.#loads.large.run(async () => {
      const tasks: Task[] = []
      for (const { taskId } of chosen) tasks.push(...(await this.#readOne(taskId)))
      return tasks
    })
  }

  /** Gives an empty list if the task's stored data is damaged, or if it has been removed. */
  async #readOne(taskId: string): Promise<Task[]> {
    const { store, logger } = this.#loads.services
    try {
      const stored = await readWhole(store, this.#scope, taskId)
      return stored ? [stored.task] : []
    } catch (error) {
      if (!isA2AError(error)) throw error
      logger.warn('a task was not loaded for the work of another task', { taskId, error })
      return []
    }
  }
}

function bytesOf(sizes: readonly TaskSize[]): number {
  return sizes.reduce((sum, { bytes }) => sum + bytes, 0)
}

/** The error for a task that is too large to be read, by its own work or by another task's. */
export function tooLarge(taskId: string, limit: number): A2AError {
  return new A2AError(
    'RateLimited',
    `Task ${taskId} is too large to be read: it has more than ${limit} stored bytes.`,
    { metadata: { taskId } }
  )
}

/** The error for an awaited task that does not fit into memory. */
function taskNotLoadable(taskId: string): A2AError {
  return new A2AError(
    'RateLimited',
    `Task ${taskId}, which this one needs, has completed, but there is no room to load it beside the other tasks that are loaded.`,
    { metadata: { taskId } }
  )
}

/** Waits for the cleanup of work whose task has ended, for `graceMs` milliseconds each at most. */
export class CleanupTracker {
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #graceMs: number
  readonly #underWay = new Set<Promise<void>>()

  constructor(clock: Clock, logger: Logger, graceMs: number) {
    this.#clock = clock
    this.#logger = logger
    this.#graceMs = graceMs
  }

  /**
   * Waits until stopped work settles. Logs a warning if that takes too long. With a grace period of 0 nothing is
   * awaited.
   */
  add(taskId: string, settled: Promise<unknown>): void {
    if (this.#graceMs === 0) return
    const cleanUp = new Promise<void>(resolve => {
      const end = () => {
        this.#underWay.delete(cleanUp)
        resolve()
      }
      const timer = this.#clock.setTimeout(() => {
        this.#logger.warn('a work did not stop within its grace period', { taskId, cancelGraceMs: this.#graceMs })
        end()
      }, this.#graceMs)
      const stopped = () => {
        this.#clock.clearTimeout(timer)
        end()
      }
      settled.then(stopped, stopped)
    })
    this.#underWay.add(cleanUp)
  }

  /** Resolves when no cleanup is running. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay)
  }
}
