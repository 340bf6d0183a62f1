import type { AnyActorRef } from 'xstate'
import { Alarms } from './alarms.ts'
import type { Clock } from './clock.ts'
import { DelayedEvents, type DelayedEvent } from './delayed-events.ts'
import type { EventClock } from './event-clock.ts'

/** What of a task's time is saved with its snapshot. */
export interface SavedTimers {
  readonly delayed?: readonly DelayedEvent[]
  readonly context?: { readonly deadlineAtMs?: number }
}

/** All that is to happen to the tasks of one context by itself: alarms of the runtime, and delayed events of authors' charts. */
export class TaskTimers {
  readonly alarms: Alarms
  readonly events: DelayedEvents
  readonly #eventClock: EventClock

  /** `eventClock` is that of the actors below `root`, which have not started; `moved` hears of the events that they schedule. */
  constructor(root: AnyActorRef, eventClock: EventClock, clock: Clock, moved: (taskId: string) => void) {
    this.#eventClock = eventClock
    this.alarms = new Alarms(clock)
    this.events = new DelayedEvents(root, eventClock, moved)
  }

  /**
   * Takes up again what was saved of the tasks, in the order of its time: what is overdue happens as soon as possible, in
   * that order too.
   */
  resume(tasks: readonly { readonly taskId: string; readonly saved: SavedTimers }[], setDeadline: (taskId: string, atMs: number) => void): void {
    const timers = tasks.flatMap(({ taskId, saved: { delayed = [], context } }) => {
      const events = delayed.map(event => ({ dueMs: event.dueMs, set: () => this.events.resume(taskId, event) }))
      const dueMs = context?.deadlineAtMs
      return dueMs === undefined ? events : [...events, { dueMs, set: () => setDeadline(taskId, dueMs) }]
    })
    for (const { set } of timers.toSorted((a, b) => a.dueMs - b.dueMs)) set()
  }

  /** When the next thing happens to a task, in milliseconds since 1970; Infinity if nothing does. */
  nextOf(taskId: string): number {
    return Math.min(this.alarms.nextOf(taskId), this.events.nextOf(taskId))
  }

  /** Nothing happens any more to a task that has ended. */
  clearTask(taskId: string): void {
    this.alarms.clearTask(taskId)
    this.#eventClock.clearTask(taskId)
  }

  /** Nothing happens any more here: the context leaves memory. */
  clearAll(): void {
    this.alarms.clearAll()
    this.#eventClock.clearAll()
  }
}
