import type { AnyActorRef, AnyMachineSnapshot, AnyStateMachine, EventObject } from 'xstate'
import type { ContextMachineEvent } from '../../machines/context.machine.ts'
import type { MessageContent } from '../../machines/task-events.ts'
import { OWN_EVENT, parseType } from '../../machines/xstate-names.ts'
import type { Clock } from '../ports/clock.ts'
import { NONE } from '../primitives/collections.ts'
import { killPoint } from '../primitives/kill-points.ts'
import { replaceSchedule, takeId } from '../xstate/actor-system.ts'
import { activeStates } from '../xstate/persisted-snapshot.ts'
import { writtenChart } from '../xstate/written-chart.ts'
import { actorPathOf, HASTY_MS, taskIdOf } from './actor-host.ts'
import type { Effect } from './commit-pipeline.ts'

type Schedule = AnyActorRef['system']['scheduler']['schedule']

/** Stored form of a delayed event in an author's chart. Actors are paths of ids. */
export interface DelayedEvent {
  /** Path from the task to the actor that scheduled it. */
  readonly source: readonly string[]
  /** Path from the context to the receiving actor, if that is another. */
  readonly target?: readonly string[]
  readonly event: EventObject
  /** Id for `cancel`. */
  readonly id?: string
  /** Whether `cancel` no longer finds it, since another one has its id. */
  readonly isFree?: true
  /** In milliseconds since 1970. */
  readonly dueMs: number
}

/** A timer that is set, but not started. */
interface HeldTimer {
  /** In milliseconds since 1970. */
  readonly dueMs: number
  readonly start: () => void
}

/**
 * The delayed events of a context's actors (`after`, `raise` and `sendTo` with a delay), with their due times. They are
 * stored with the task, and rescheduled from there.
 */
class DelayedEvents {
  readonly #root: AnyActorRef
  readonly #clock: EventClock
  /** XState's own `schedule`. */
  readonly #schedule: Schedule

  /** Wraps `schedule` of the actor system of `root`, which uses this clock and has not started. */
  constructor(root: AnyActorRef, clock: EventClock, host: TimerHost) {
    this.#root = root
    this.#clock = clock
    this.#schedule = replaceSchedule(root.system, (source, target, event, delayMs, id) => {
      this.#begin({ source, target, event, id, dueMs: clock.now() + (delayMs > 0 ? delayMs : 0), isFree: false })
      host.markChanged(taskIdOf(source))
    })
  }

  /**
   * Reschedules stored events whose actors exist. The timers are held back, so that overdue ones can be started by due
   * time.
   */
  resume(taskId: string, events: readonly DelayedEvent[]): readonly HeldTimer[] {
    return this.#clock.heldBack(() => {
      for (const { source, target, event, id, isFree = false, dueMs } of events) {
        const from = this.#actorAt([taskId, ...source])
        const to = target ? this.#actorAt(target) : from
        if (!from || !to) continue
        this.#begin({ source: from, target: to, event, id, dueMs, isFree })
        if (isFree && id !== undefined) takeId(this.#schedule, from, id)
      }
    })
  }

  /**
   * A task's events in stored form, in the order in which they were scheduled, without those of actors that no longer
   * exist.
   */
  of(taskId: string): DelayedEvent[] {
    const scheduledEvents = this.#clock.eventsOf(taskId)
    if (scheduledEvents === NONE) return []
    const events: DelayedEvent[] = []
    for (const scheduled of scheduledEvents) {
      const { source, target, dueMs } = scheduled
      if (dueMs < Infinity && this.#isThere(source) && this.#isThere(target)) events.push(saved(scheduled))
    }
    return events
  }

  /** Due time of a task's next event; Infinity if there is none. */
  nextOf(taskId: string): number {
    let nextMs = Infinity
    for (const { dueMs } of this.#clock.eventsOf(taskId)) nextMs = Math.min(nextMs, dueMs)
    return nextMs
  }

  #begin(about: Scheduled): void {
    const { source, target, event, id, dueMs } = about
    this.#clock.setFor(about, () => this.#schedule(source, target, event, Math.max(0, dueMs - this.#clock.now()), id))
  }

  #isThere(actor: AnyActorRef): boolean {
    return this.#actorAt(actorPathOf(actor)) === actor
  }

  #actorAt(path: readonly string[]): AnyActorRef | undefined {
    let actor: AnyActorRef | undefined = this.#root
    for (const id of path) actor = actor?.getSnapshot().children?.[id]
    return actor
  }
}

function saved({ source, target, event, id, dueMs, isFree }: Scheduled): DelayedEvent {
  return {
    source: actorPathOf(source).slice(1),
    ...(target !== source && { target: actorPathOf(target) }),
    event,
    ...(id !== undefined && { id }),
    ...(isFree && { isFree }),
    dueMs
  }
}

/** A scheduled event, from one actor to another or the same. */
interface Scheduled {
  readonly source: AnyActorRef
  readonly target: AnyActorRef
  readonly event: EventObject
  readonly id: string | undefined
  /** In milliseconds since 1970. */
  readonly dueMs: number
  /** See {@link DelayedEvent}. */
  isFree: boolean
}

interface Timer {
  readonly about: Scheduled | undefined
  timer: unknown
}

/** The context of timers. */
interface TimerHost {
  readonly clock: Clock
  /** Called when the timers of a task have changed, so that the task is saved. */
  markChanged(taskId: string): void
  noteHaste(taskId: string): void
  /** Runs the delivery of a due event, at once or later; until then the event counts as scheduled. */
  deliver(delivery: Effect): void
  /** Runs the callback of an alarm. */
  run(effect: Effect): void
  send(event: ContextMachineEvent): void
}

/** The clock of a context's actors, for XState. It knows which event each timer is for, by task. */
export class EventClock {
  readonly #clock: Clock
  readonly #host: TimerHost
  /** Created by the first event. */
  #tasks: Map<string, Map<Timer, Scheduled>> | undefined
  #about: Scheduled | undefined
  #held: HeldTimer[] | undefined

  constructor(host: TimerHost) {
    this.#clock = host.clock
    this.#host = host
  }

  now(): number {
    return this.#clock.now()
  }

  /** Runs `set`, which sets the timer of this event. */
  setFor(about: Scheduled, set: () => void): void {
    this.#about = about
    set()
    this.#about = undefined
  }

  /** Runs `set`, and gives the timers of events that it sets, which have not started. */
  heldBack(set: () => void): readonly HeldTimer[] {
    const held: HeldTimer[] = (this.#held = [])
    set()
    this.#held = undefined
    return held
  }

  /** A timer that an author sets on an actor's clock has no event, and is not tracked. */
  setTimeout(callback: () => void, delayMs: number): unknown {
    const about = this.#about
    const timer: Timer = { about, timer: undefined }
    if (!about) {
      timer.timer = this.#clock.setTimeout(callback, delayMs)
      return timer
    }
    const taskId = taskIdOf(about.source)
    const run = () => {
      killPoint('timer due')
      if (!this.#drop(timer)) return
      if (delayMs < HASTY_MS) this.#host.noteHaste(taskId)
      callback()
    }
    const start = (delayMs: number) =>
      void (timer.timer = this.#clock.setTimeout(() => this.#host.deliver({ taskId, run }), delayMs))
    if (this.#held) this.#held.push({ dueMs: about.dueMs, start: () => start(Math.max(0, about.dueMs - this.now())) })
    else start(delayMs)
    this.#keep(timer, about)
    return timer
  }

  clearTimeout(timer: Timer): void {
    this.#clock.clearTimeout(timer.timer)
    this.#drop(timer)
  }

  /** The scheduled events of a task, in the order in which they were scheduled. */
  eventsOf(taskId: string): Iterable<Scheduled> {
    return this.#tasks?.get(taskId)?.values() ?? NONE
  }

  /** Clears the timers of a task that has ended. */
  clearTask(taskId: string): void {
    for (const { timer } of this.#tasks?.get(taskId)?.keys() ?? []) this.#clock.clearTimeout(timer)
    this.#tasks?.delete(taskId)
  }

  /** Clears all timers, because the context leaves memory. */
  clearAll(): void {
    for (const taskId of this.#tasks?.keys() ?? []) this.clearTask(taskId)
  }

  #keep(timer: Timer, about: Scheduled): void {
    const taskId = taskIdOf(about.source)
    const tasks = (this.#tasks ??= new Map())
    const timers = tasks.get(taskId) ?? new Map<Timer, Scheduled>()
    freeOthers(timers, about)
    tasks.set(taskId, timers.set(timer, about))
  }

  /** Stops tracking a timer. Gives whether it was tracked. */
  #drop(timer: Timer): boolean {
    if (!timer.about) return false
    const taskId = taskIdOf(timer.about.source)
    const timers = this.#tasks?.get(taskId)
    if (!timers?.delete(timer)) return false
    if (timers.size === 0) this.#tasks?.delete(taskId)
    else freeOthers(timers, timer.about)
    this.#host.markChanged(taskId)
    return true
  }
}

/** Frees an id: `cancel` finds only the newest event with it, and none once that has fired or is canceled. */
function freeOthers(timers: ReadonlyMap<Timer, Scheduled>, { source, id }: Scheduled): void {
  for (const other of timers.values()) {
    if (id !== undefined && other.id === id && other.source === source) other.isFree = true
  }
}

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
