import { receivedBytes } from '../authoring/request-details.ts'
import type { ReadOpened, WorkInput } from '../authoring/work-arguments.ts'
import type { TaskLedger } from '../commits/task-ledger.ts'
import type { ContextKey } from '../store/store.ts'
import type { WorkLoads } from '../work/task-loads.ts'
import { loadWorkInput } from '../work/work-input.ts'
import type { ContextServices } from './dependencies.ts'

/** The inputs of the works of one live context, and the tasks that are loaded for them. */
export class ContextLoads {
  readonly #key: ContextKey
  readonly #services: ContextServices
  readonly #tasks: TaskLedger
  /** By task; none before the first. */
  #byTask: Map<string, WorkLoads> | undefined
  #hasLeft = false

  constructor(key: ContextKey, services: ContextServices, tasks: TaskLedger) {
    this.#key = key
    this.#services = services
    this.#tasks = tasks
  }

  /** Loads the input of a task's work. The loads of an earlier run of it end. */
  async input(taskId: string, open?: ReadOpened): Promise<WorkInput> {
    const { store, agent, limits } = this.#services
    this.ended(taskId)
    const input = await loadWorkInput(this.#key, taskId, { store, agent, limits, loads: this.of(taskId) }, open)
    this.#tasks.keepAtLeast(taskId, receivedBytes(input))
    return input
  }

  /** The loads of a task's work: released already if the task has ended, or the context has left memory. */
  of(taskId: string): WorkLoads {
    const loads = this.#byTask?.get(taskId) ?? this.#services.loads.of(this.#key)
    if (this.#hasLeft || !this.#tasks.has(taskId)) loads.release()
    else (this.#byTask ??= new Map()).set(taskId, loads)
    return loads
  }

  /** The work has ended: the tasks that were loaded for it no longer count. */
  ended(taskId: string): void {
    this.#byTask?.get(taskId)?.release()
    this.#byTask?.delete(taskId)
  }

  /** The context leaves memory. */
  leave(): void {
    this.#hasLeft = true
    for (const loads of this.#byTask?.values() ?? []) loads.release()
  }
}
