import type { AnyActorRef } from 'xstate'
import type { PersistedSnapshot } from './persisted-snapshot.ts'

type System = AnyActorRef['system']
type Schedule = System['scheduler']['schedule']

/** Id of an actor that was spawned without one: XState counts them from 0 in each process. */
const COUNTED = /^x:\d+$/

/** Skips the counted ids of restored actors for actors that are spawned without an id in the same system. */
export function keepSpawnIdsApart(system: System, restored: readonly PersistedSnapshot[]): void {
  const taken = new Set(restored.flatMap(countedIdsIn))
  if (taken.size === 0) return
  const counting = system as unknown as { _bookId: () => string }
  const book = counting._bookId
  // Declared before the assignment: see replaceSchedule.
  const bookFree = () => {
    let id = book()
    while (taken.has(id)) id = book()
    return id
  }
  counting._bookId = bookFree
}

function countedIdsIn({ children = {} }: PersistedSnapshot): string[] {
  return Object.entries(children).flatMap(([id, { snapshot }]) => [...(COUNTED.test(id) ? [id] : []), ...countedIdsIn(snapshot)])
}

/**
 * Replaces the function that schedules delayed events of a system's actors. Returns XState's own.
 *
 * V8 allocates a closure that is written in a property assignment in the old generation, and keeps everything that the closure
 * references until a full collection. So declare the closure first, or pass it as an argument. Otherwise a task leaves 8.4 kB behind
 * instead of 1.0 (Node 24; `test/runtime/left-behind.test.ts` measures it).
 */
export function replaceSchedule({ scheduler }: System, replacement: Schedule): Schedule {
  const schedule = scheduler.schedule.bind(scheduler)
  scheduler.schedule = replacement
  return schedule
}
