import type { Clock } from '../ports/clock.ts'
import { killPoint } from '../primitives/kill-points.ts'

interface Alarm {
  readonly dueMs: number
  readonly timer: unknown
}

/**
 * The alarms that the runtime sets for the tasks of one context, by task and name. They live in memory: whoever sets one
 * sets it again after a restart.
 */
export class Alarms {
  readonly #clock: Clock
  readonly #tasks = new Map<string, Map<string, Alarm>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Has `ring` called once, when the clock reaches `dueMs` (milliseconds since 1970); never within this call, also if
   * that is over. Takes the place of the task's alarm of the same name.
   */
  set(taskId: string, name: string, dueMs: number, ring: () => void): void {
    this.clear(taskId, name)
    const timer = this.#clock.setTimeout(() => {
      killPoint('timer due')
      this.clear(taskId, name)
      ring()
    }, Math.max(0, dueMs - this.#clock.now()))
    const alarms = this.#tasks.get(taskId) ?? new Map<string, Alarm>()
    this.#tasks.set(taskId, alarms.set(name, { dueMs, timer }))
  }

  /** Takes an alarm back. Answers whether there was one: not if it has rung. */
  clear(taskId: string, name: string): boolean {
    const alarms = this.#tasks.get(taskId)
    const alarm = alarms?.get(name)
    if (!alarms || !alarm) return false
    this.#clock.clearTimeout(alarm.timer)
    alarms.delete(name)
    if (alarms.size === 0) this.#tasks.delete(taskId)
    return true
  }

  /** Takes back all alarms of a task that has ended. */
  clearTask(taskId: string): void {
    for (const { timer } of this.#tasks.get(taskId)?.values() ?? []) this.#clock.clearTimeout(timer)
    this.#tasks.delete(taskId)
  }

  /** Takes back all alarms: the context leaves memory. */
  clearAll(): void {
    for (const taskId of this.#tasks.keys()) this.clearTask(taskId)
  }

  /** When a task's next alarm rings; Infinity if it has none. */
  nextOf(taskId: string): number {
    let nextMs = Infinity
    for (const { dueMs } of this.#tasks.get(taskId)?.values() ?? []) nextMs = Math.min(nextMs, dueMs)
    return nextMs
  }
}
