import type { AnyActorRef, EventObject } from 'xstate'
import type { ContextMachineEvent } from '../../machines/context.machine.ts'
import { taskIdOf, HASTY_MS, actorPathOf } from '../commits/actor-host.ts'
import type { Effect } from '../commits/turn.ts'
import type { Clock } from '../ports/clock.ts'
import { NONE } from '../primitives/collections.ts'
import { killPoint } from '../primitives/kill-points.ts'
import { replaceSchedule, takeId } from '../xstate/actor-system.ts'

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
export interface HeldTimer {
  /** In milliseconds since 1970. */
  readonly dueMs: number
  readonly start: () => void
}

/**
 * The delayed events of a context's actors (`after`, `raise` and `sendTo` with a delay), with their due times. They are
 * stored with the task, and rescheduled from there.
 */
export class DelayedEvents {
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
export interface Scheduled {
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
export interface TimerHost {
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
