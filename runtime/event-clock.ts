import type { AnyActorRef, EventObject } from 'xstate'
import { familyOf } from './actor-host.ts'
import type { Clock } from './clock.ts'
import { fault } from './fault.ts'

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
 * the actor that scheduled them. `moved` hears when a task's timers become fewer.
 */
export class EventClock {
  readonly #clock: Clock
  readonly #moved: (taskId: string) => void
  readonly #tasks = new Map<string, Map<Timer, Scheduled>>()
  #about: Scheduled | undefined

  constructor(clock: Clock, moved: (taskId: string) => void) {
    this.#clock = clock
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
    timer.timer = this.#clock.setTimeout(() => {
      fault('P14')
      this.#drop(timer)
      callback()
    }, delayMs)
    if (about) this.#keep(timer, about)
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

  #drop(timer: Timer): void {
    if (!timer.about) return
    const taskId = familyOf(timer.about.source)
    const timers = this.#tasks.get(taskId)
    if (!timers?.delete(timer)) return
    if (timers.size === 0) this.#tasks.delete(taskId)
    this.#moved(taskId)
  }
}
