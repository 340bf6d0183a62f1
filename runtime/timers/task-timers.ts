import type { AnyActorRef } from 'xstate'
import type { MessageContent } from '../../machines/task-events.ts'
import type { Effect } from '../commits/turn.ts'
import type { Clock } from '../ports/clock.ts'
import { killPoint } from '../primitives/kill-points.ts'
import { DelayedEvents, type DelayedEvent, type EventClock } from './delayed-events.ts'

/** The name of the alarm that ends a task which was not finished in time. */
export const DEADLINE = 'deadline'

const UNITS = [
  ['day', 24 * 60 * 60 * 1000],
  ['hour', 60 * 60 * 1000],
  ['minute', 60 * 1000],
  ['second', 1000],
  ['millisecond', 1]
] as const

/** Why a task failed that was not finished in time; `deadlineMs` is what its agent allows, if it still has a deadline. */
export function notInTime(deadlineMs: number | undefined): MessageContent {
  return { parts: [{ text: `The task was not finished ${deadlineMs === undefined ? 'in time' : `within ${inWords(deadlineMs)}`}.` }] }
}

/** A length of time in the largest unit of which it is a whole number: `2 minutes`, `90 seconds`. */
function inWords(ms: number): string {
  const [unit, unitMs] = UNITS.find(([, unitMs]) => ms % unitMs === 0) ?? ['millisecond', 1]
  const count = ms / unitMs
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

/** What of a task's time is saved with its snapshot. */
export interface SavedTimers {
  readonly delayed?: readonly DelayedEvent[]
  readonly context?: { readonly deadlineAtMs?: number }
}

/** What the timers are told of, and tell, their context. */
export interface TimedContext {
  readonly clock: Clock
  /** The clock of the context's actors, which have not started. */
  readonly eventClock: EventClock
  /** Hears that what is to happen to a task has changed, so that the task is saved. */
  readonly moved: (taskId: string) => void
  /** Runs what an alarm is for. */
  readonly run: (effect: Effect) => void
  /** Ends a task as failed. */
  readonly fail: (taskId: string, message: MessageContent) => void
  /** How long the work of a task may take. */
  readonly deadlineMs: number | undefined
}

/** All that is to happen to the tasks of one context by itself: alarms of the runtime, and delayed events of authors' charts. */
export class TaskTimers {
  readonly #context: TimedContext
  readonly #alarms: Alarms
  readonly #events: DelayedEvents

  constructor(root: AnyActorRef, context: TimedContext) {
    this.#context = context
    this.#alarms = new Alarms(context.clock)
    this.#events = new DelayedEvents(root, context.eventClock, context.moved)
  }

  setAlarm(taskId: string, name: string, dueMs: number, ring: () => void): void {
    const { moved, run } = this.#context
    this.#alarms.set(taskId, name, dueMs, () => {
      moved(taskId)
      run({ taskId, run: ring })
    })
    moved(taskId)
  }

  clearAlarm(taskId: string, name: string): void {
    if (this.#alarms.clear(taskId, name)) this.#context.moved(taskId)
  }

  /** Sets the deadline of a task whose work starts now, if it has one. The task chart keeps it. */
  startDeadline(taskId: string): { deadlineAtMs?: number } {
    const { clock, deadlineMs } = this.#context
    if (deadlineMs === undefined) return {}
    const deadlineAtMs = clock.now() + deadlineMs
    this.#setDeadline(taskId, deadlineAtMs)
    return { deadlineAtMs }
  }

  /**
   * Takes up again what was saved of the tasks, in the order of its time: what is overdue happens as soon as possible, in
   * that order too.
   */
  resume(tasks: readonly { readonly taskId: string; readonly saved: SavedTimers }[]): void {
    const timers = tasks.flatMap(({ taskId, saved: { delayed = [], context } }) => {
      const events = delayed.map(event => ({ dueMs: event.dueMs, set: () => this.#events.resume(taskId, event) }))
      const dueMs = context?.deadlineAtMs
      return dueMs === undefined ? events : [...events, { dueMs, set: () => this.#setDeadline(taskId, dueMs) }]
    })
    for (const { set } of timers.toSorted((a, b) => a.dueMs - b.dueMs)) set()
  }

  /** The delayed events of a task's charts, as they are to be saved. */
  eventsOf(taskId: string): DelayedEvent[] {
    return this.#events.of(taskId)
  }

  /** When the next thing happens to a task, in milliseconds since 1970; Infinity if nothing does. */
  nextOf(taskId: string): number {
    return Math.min(this.#alarms.nextOf(taskId), this.#events.nextOf(taskId))
  }

  /** Nothing happens any more to a task that has ended. */
  clearTask(taskId: string): void {
    this.#alarms.clearTask(taskId)
    this.#context.eventClock.clearTask(taskId)
  }

  /** Nothing happens any more here: the context leaves memory. */
  clearAll(): void {
    this.#alarms.clearAll()
    this.#context.eventClock.clearAll()
  }

  #setDeadline(taskId: string, atMs: number): void {
    const { fail, deadlineMs } = this.#context
    this.#alarms.set(taskId, DEADLINE, atMs, () => fail(taskId, notInTime(deadlineMs)))
  }
}

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
