import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import type { Limits } from '../access/limits.ts'
import { Shares, type Sharer } from '../access/shares.ts'
import type { Logger } from '../ports/logger.ts'
import type { Scope, Store, TaskSize } from '../store/store.ts'

/** How many works can hold `limits.referencedBytes` each at the same time. */
const FULL_WORKS = 16

/** Tasks of more bytes than this together are read one after the other, so that a load does not hold up the event loop. */
const LARGE_BYTES = 1024 * 1024

/** Tasks for a work: those that were loaded, and the ids of those that were not. */
export interface LoadedTasks {
  readonly tasks: Task[]
  readonly unloaded: string[]
}

type LoadingServices = { readonly store: Store; readonly limits: Limits; readonly logger: Logger }

/**
 * Bounds the memory that works hold of other tasks: `limits.referencedTasks` and `limits.referencedBytes` for each work, and 16
 * times `limits.referencedBytes` for all works of the process, of which one principal has its share (`limits.principalShare`).
 */
export class TaskLoads {
  readonly services: LoadingServices
  /** The bytes that all works hold. */
  readonly shares: Shares
  #large: Promise<unknown> = Promise.resolve()

  constructor(services: LoadingServices) {
    this.services = services
    this.shares = new Shares(services.limits.referencedBytes * FULL_WORKS, services.limits)
  }

  /** The loads of one work. */
  of(scope: Scope): WorkLoads {
    return new WorkLoads(this, scope)
  }

  /** Runs one large load at a time. */
  inTurn<T>(load: () => Promise<T>): Promise<T> {
    const turn = this.#large.then(load)
    this.#large = turn.catch(() => {})
    return turn
  }
}

/** The tasks that are loaded for one work, which holds them until it ends or leaves memory. */
export class WorkLoads {
  readonly #loads: TaskLoads
  readonly #scope: Scope
  readonly #sharer: Sharer
  /** Bytes of the tasks that the work was given. */
  #given = 0
  /** Bytes of each task that the work has waited for. */
  readonly #awaited = new Map<string, number>()
  #isReleased = false

  constructor(loads: TaskLoads, scope: Scope) {
    this.#loads = loads
    this.#scope = scope
    this.#sharer = { user: `${scope.tenant.length}.${scope.tenant}${scope.principal}` }
  }

  /** Loads those of these tasks that fit, the first of them first. A task whose stored data is damaged is not loaded. */
  async load(found: readonly TaskSize[]): Promise<LoadedTasks> {
    const chosen = this.#choose(found)
    const tasks = await this.#read(chosen)
    const ids = new Set(tasks.map(({ id }) => id))
    return { tasks, unloaded: found.flatMap(({ taskId }) => (ids.has(taskId) ? [] : [taskId])) }
  }

  /**
   * Loads a task that the work has waited for; `undefined` if it has been removed. All of them have room for
   * `limits.referencedBytes`. Rejects with RateLimited if the task does not fit.
   */
  async loadAwaited({ taskId, bytes }: TaskSize): Promise<Task | undefined> {
    const { store, limits } = this.#loads.services
    const more = bytes - (this.#awaited.get(taskId) ?? 0)
    const sum = [...this.#awaited.values()].reduce((all, each) => all + each, more)
    if (sum > limits.referencedBytes || this.#loads.shares.lacking(this.#sharer, more)) throw noRoom(taskId)
    if (!this.#isReleased) {
      this.#awaited.set(taskId, bytes)
      this.#loads.shares.add(this.#sharer, more)
    }
    const read = () => store.readTask(this.#scope, taskId)
    const stored = await (bytes > LARGE_BYTES ? this.#loads.inTurn(read) : read())
    return stored?.task
  }

  /** Ends the loads. May be called twice. */
  release(): void {
    this.#isReleased = true
    let bytes = this.#given
    for (const each of this.#awaited.values()) bytes += each
    this.#loads.shares.add(this.#sharer, -bytes)
    this.#given = 0
    this.#awaited.clear()
  }

  /** Chooses the tasks that there is room for, and takes that room. */
  #choose(found: readonly TaskSize[]): TaskSize[] {
    const { referencedTasks, referencedBytes } = this.#loads.services.limits
    const chosen: TaskSize[] = []
    for (const task of found) {
      if (chosen.length === referencedTasks || this.#isReleased) break
      if (this.#given + task.bytes > referencedBytes || this.#loads.shares.lacking(this.#sharer, task.bytes)) continue
      this.#given += task.bytes
      this.#loads.shares.add(this.#sharer, task.bytes)
      chosen.push(task)
    }
    return chosen
  }

  async #read(chosen: readonly TaskSize[]): Promise<Task[]> {
    if (bytesOf(chosen) <= LARGE_BYTES) return (await Promise.all(chosen.map(({ taskId }) => this.#readOne(taskId)))).flat()
    return this.#loads.inTurn(async () => {
      const tasks: Task[] = []
      for (const { taskId } of chosen) tasks.push(...(await this.#readOne(taskId)))
      return tasks
    })
  }

  /** None if its stored data is damaged, or if it has been removed. */
  async #readOne(taskId: string): Promise<Task[]> {
    const { store, logger } = this.#loads.services
    try {
      const stored = await store.readTask(this.#scope, taskId)
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

/** Why a task is not read, for its own work to start again or for the work of another task. */
export function tooLarge(taskId: string, limit: number): A2AError {
  return new A2AError('RateLimited', `Task ${taskId} is too large to be read: more than ${limit} bytes are stored of it.`, { metadata: { taskId } })
}

/** Why a task is not loaded for the work that waited for it. */
export function noRoom(taskId: string): A2AError {
  return new A2AError('RateLimited', `Task ${taskId}, which this one needs, has completed, but there is no room to load it beside the other tasks that are loaded.`, { metadata: { taskId } })
}
