import type { AnyActorRef, AnyMachineSnapshot, AnyStateMachine } from 'xstate'
import type { MessageContent } from '../../machines/task-events.ts'
import { OWN_EVENT, parseType } from '../../machines/xstate-names.ts'
import { actorPathOf } from '../commits/actor-host.ts'
import type { Clock } from '../ports/clock.ts'
import { killPoint } from '../primitives/kill-points.ts'
import { activeStates } from '../xstate/persisted-snapshot.ts'
import { writtenChart } from '../xstate/written-chart.ts'
import { type DelayedEvent, DelayedEvents, type EventClock, type TimerHost } from './delayed-events.ts'

/** The name of a task's deadline alarm. */
const DEADLINE = 'deadline'

const UNITS = [
  ['day', 24 * 60 * 60 * 1000],
  ['hour', 60 * 60 * 1000],
  ['minute', 60 * 1000],
  ['second', 1000],
  ['millisecond', 1]
] as const

/** Reason of a task that exceeded its deadline. `deadlineMs` is undefined if the agent no longer has a deadline. */
export function notInTime(deadlineMs: number | undefined): MessageContent {
  return {
    parts: [
      { text: `The task was not finished ${deadlineMs === undefined ? 'in time' : `within ${inWords(deadlineMs)}`}.` }
    ]
  }
}

/** A duration in the largest unit that gives a whole number: `2 minutes`, `90 seconds`. */
function inWords(ms: number): string {
  const [unit, unitMs] = UNITS.find(([, unitMs]) => ms % unitMs === 0) ?? ['millisecond', 1]
  const count = ms / unitMs
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

/** The timers that are stored with a task's snapshot. */
export interface SavedTimers {
  readonly delayed?: readonly DelayedEvent[]
  readonly context?: { readonly deadlineAtMs?: number }
}

/** All timers of one context's tasks: alarms of the runtime, and delayed events of authors' charts. */
export class TaskTimers {
  readonly #host: TimerHost
  readonly #eventClock: EventClock
  readonly #deadlineMs: number | undefined
  readonly #alarms: Alarms
  readonly #events: DelayedEvents

  /**
   * `eventClock` is the clock of the context's actors, which have not started; `deadlineMs` the agent's time limit of a
   * task's work, in milliseconds.
   */
  constructor(root: AnyActorRef, eventClock: EventClock, host: TimerHost, deadlineMs: number | undefined) {
    this.#host = host
    this.#deadlineMs = deadlineMs
    this.#eventClock = eventClock
    this.#alarms = new Alarms(host.clock)
    this.#events = new DelayedEvents(root, eventClock, host)
  }

  setAlarm(taskId: string, name: string, dueMs: number, ring: () => void): void {
    this.#alarms.set(taskId, name, dueMs, () => {
      this.#host.markChanged(taskId)
      this.#host.run({ taskId, run: ring })
    })
    this.#host.markChanged(taskId)
  }

  clearAlarm(taskId: string, name: string): void {
    if (this.#alarms.clear(taskId, name)) this.#host.markChanged(taskId)
  }

  /** Sets the deadline of a task whose work starts now, if the agent has one. The task chart stores it. */
  startDeadline(taskId: string): { deadlineAtMs?: number } {
    if (this.#deadlineMs === undefined) return {}
    const deadlineAtMs = this.#host.clock.now() + this.#deadlineMs
    this.#setDeadline(taskId, deadlineAtMs)
    return { deadlineAtMs }
  }

  /**
   * Restores stored timers, by due time. Overdue ones fire as soon as possible, in that order.
   */
  resume(tasks: readonly { readonly taskId: string; readonly saved: SavedTimers }[]): void {
    const timers = tasks.flatMap(({ taskId, saved: { delayed = [], context } }) => {
      const events = this.#events.resume(taskId, delayed)
      const dueMs = context?.deadlineAtMs
      return dueMs === undefined ? events : [...events, { dueMs, start: () => this.#setDeadline(taskId, dueMs) }]
    })
    for (const { start } of timers.toSorted((a, b) => a.dueMs - b.dueMs)) start()
  }

  /** The delayed events of a task's charts, in stored form. */
  eventsOf(taskId: string): DelayedEvent[] {
    return this.#events.of(taskId)
  }

  /** Due time of a task's next timer, in milliseconds since 1970; Infinity if there is none. */
  nextOf(taskId: string): number {
    return Math.min(this.#alarms.nextOf(taskId), this.#events.nextOf(taskId))
  }

  /** Clears the timers of a task that has ended. */
  clearTask(taskId: string): void {
    this.#alarms.clearTask(taskId)
    this.#eventClock.clearTask(taskId)
  }

  /** Clears all timers, because the context leaves memory. */
  clearAll(): void {
    this.#alarms.clearAll()
    this.#eventClock.clearAll()
  }

  #setDeadline(taskId: string, atMs: number): void {
    this.#alarms.set(taskId, DEADLINE, atMs, () =>
      this.#host.send({ type: 'task.fail', taskId, message: notInTime(this.#deadlineMs) })
    )
  }
}

interface Alarm {
  readonly dueMs: number
  readonly timer: unknown
}

/**
 * The alarms that the runtime sets for the tasks of one context, by task and name. They are only in memory: after a
 * restore the caller has to set them again.
 */
export class Alarms {
  readonly #clock: Clock
  /** Created by the first alarm. */
  #tasks: Map<string, Map<string, Alarm>> | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Calls `ring` once when the clock reaches `dueMs` (milliseconds since 1970), but not within this call, even if that
   * is past. Replaces the task's alarm of the same name.
   */
  set(taskId: string, name: string, dueMs: number, ring: () => void): void {
    this.clear(taskId, name)
    const timer = this.#clock.setTimeout(
      () => {
        killPoint('timer due')
        this.clear(taskId, name)
        ring()
      },
      Math.max(0, dueMs - this.#clock.now())
    )
    const tasks = (this.#tasks ??= new Map())
    const alarms = tasks.get(taskId) ?? new Map<string, Alarm>()
    tasks.set(taskId, alarms.set(name, { dueMs, timer }))
  }

  /** Clears an alarm. Gives whether there was one that has not rung. */
  clear(taskId: string, name: string): boolean {
    const alarms = this.#tasks?.get(taskId)
    const alarm = alarms?.get(name)
    if (!alarms || !alarm) return false
    this.#clock.clearTimeout(alarm.timer)
    alarms.delete(name)
    if (alarms.size === 0) this.#tasks?.delete(taskId)
    return true
  }

  /** Clears all alarms of a task that has ended. */
  clearTask(taskId: string): void {
    for (const { timer } of this.#tasks?.get(taskId)?.values() ?? []) this.#clock.clearTimeout(timer)
    this.#tasks?.delete(taskId)
  }

  /** Clears all alarms, because the context leaves memory. */
  clearAll(): void {
    for (const taskId of this.#tasks?.keys() ?? []) this.clearTask(taskId)
  }

  /** Due time of a task's next alarm; Infinity if there is none. */
  nextOf(taskId: string): number {
    let nextMs = Infinity
    for (const { dueMs } of this.#tasks?.get(taskId)?.values() ?? []) nextMs = Math.min(nextMs, dueMs)
    return nextMs
  }
}

/**
 * Renews the delayed events of a task whose charts have changed. An `after` of a state that is not active, or no longer
 * exists, is dropped; a new `after` of an active state starts now. All others stay. Throws what an author's delay
 * function throws.
 */
export function renewedTimers(task: AnyActorRef, delayed: readonly DelayedEvent[], nowMs: number): DelayedEvent[] {
  const others = delayed.filter(({ event }) => parseType(event.type)?.kind !== 'after')
  const timers = chartsBelow(task).flatMap(chart => {
    const source = actorPathOf(chart).slice(1)
    return afterOf(chart).map(({ type, delayMs }) => {
      const stored = delayed.find(
        ({ event, source: from }) => event.type === type && from.join('/') === source.join('/')
      )
      return stored ?? { source, event: { type }, id: type, dueMs: nowMs + delayMs }
    })
  })
  return [...others, ...timers]
}

/** The active charts at or below an actor. */
function chartsBelow(actor: AnyActorRef): AnyActorRef[] {
  const { status, children, machine } = actor.getSnapshot() as Partial<AnyMachineSnapshot>
  if (status !== 'active' || !machine) return []
  return [actor, ...Object.values<AnyActorRef>(children).flatMap(chartsBelow)]
}

/** The timers of a chart's active states. An invalid delay counts as 0 ms, as in XState. */
function afterOf(chart: AnyActorRef): { type: string; delayMs: number }[] {
  const snapshot: AnyMachineSnapshot = chart.getSnapshot()
  const active = new Set(activeStates(snapshot).map(({ id }) => id))
  const delayed = writtenChart(snapshot.machine as AnyStateMachine).transitions.filter(
    ({ source, delay }) => active.has(source.id) && delay !== undefined
  )
  return delayed.map(({ event, delay }) => ({ type: event, delayMs: delayOf(delay, snapshot, chart) }))
}

function delayOf(delay: unknown, snapshot: AnyMachineSnapshot, self: AnyActorRef): number {
  const { delays } = (snapshot.machine as AnyStateMachine).implementations
  const given: unknown = typeof delay === 'string' ? delays[delay] : delay
  const delayMs: unknown =
    typeof given === 'function'
      ? given({ context: snapshot.context, event: { type: OWN_EVENT.start }, self }, undefined)
      : given
  /* c8 ignore next -- an author's function may give any value; defineAgent refuses undefined delays */
  return typeof delayMs === 'number' ? delayMs : 0
}
