import type { AnyActorRef, EventObject } from 'xstate'
import { familyOf } from './actor-host.ts'
import type { Clock } from './clock.ts'
import { fault } from './fault.ts'
import type { Effect } from './turn.ts'

/** An event on its way, from one actor to another or the same. */
export interface Scheduled {
  readonly source: AnyActorRef
  readonly target: AnyActorRef
  readonly event: EventObject
  readonly id: string | undefined
  /** In milliseconds since 1970. */
  readonly dueMs: number
}

interface Timer {
  readonly about: Scheduled | undefined
  timer: unknown
}

/**
 * The clock of a context's actors, as XState takes it, which knows what events its timers are for: those of each task, by
 * the actor that scheduled them. `deliver` runs what delivers an event that is due, at once or later: until then the event
 * is on its way. `moved` hears when a task's timers become fewer.
 */
export class EventClock {
  readonly #clock: Clock
  readonly #deliver: (delivery: Effect) => void
  readonly #moved: (taskId: string) => void
  readonly #tasks = new Map<string, Map<Timer, Scheduled>>()
  #about: Scheduled | undefined

  constructor(clock: Clock, deliver: (delivery: Effect) => void, moved: (taskId: string) => void) {
    this.#clock = clock
    this.#deliver = deliver
    this.#moved = moved
  }

  now(): number {
    return this.#clock.now()
  }

  /** Runs what sets the timer of an event. */
  setFor(about: Scheduled, set: () => void): void {
    this.#about = about
    set()
    this.#about = undefined
  }

  /** A timer that an author sets on the clock of an actor is for no event, and is not ours to keep. */
  setTimeout(callback: () => void, delayMs: number): unknown {
    const about = this.#about
    const timer: Timer = { about, timer: undefined }
    if (!about) {
      timer.timer = this.#clock.setTimeout(callback, delayMs)
      return timer
    }
    const taskId = familyOf(about.source)
    const run = () => {
      fault('P14')
      if (this.#drop(timer)) callback()
    }
    timer.timer = this.#clock.setTimeout(() => this.#deliver({ taskId, run }), delayMs)
    this.#keep(timer, about)
    return timer
  }

  clearTimeout(timer: Timer): void {
    this.#clock.clearTimeout(timer.timer)
    this.#drop(timer)
  }

  /** The events of a task that are on their way, in the order in which they were scheduled. */
  eventsOf(taskId: string): Iterable<Scheduled> {
    return this.#tasks.get(taskId)?.values() ?? []
  }

  /** Forgets the events of a task that has ended. */
  clearTask(taskId: string): void {
    for (const { timer } of this.#tasks.get(taskId)?.keys() ?? []) this.#clock.clearTimeout(timer)
    this.#tasks.delete(taskId)
  }

  /** Forgets all events: the context leaves memory. */
  clearAll(): void {
    for (const taskId of this.#tasks.keys()) this.clearTask(taskId)
  }

  #keep(timer: Timer, about: Scheduled): void {
    const taskId = familyOf(about.source)
    const timers = this.#tasks.get(taskId) ?? new Map<Timer, Scheduled>()
    this.#tasks.set(taskId, timers.set(timer, about))
  }

  /** Forgets a timer; answers whether it was there. */
  #drop(timer: Timer): boolean {
    if (!timer.about) return false
    const taskId = familyOf(timer.about.source)
    const timers = this.#tasks.get(taskId)
    if (!timers?.delete(timer)) return false
    if (timers.size === 0) this.#tasks.delete(taskId)
    this.#moved(taskId)
    return true
  }
}
