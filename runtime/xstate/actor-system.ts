import type { AnyActorRef } from 'xstate'
import type { PersistedSnapshot } from './persisted-snapshot.ts'

type System = AnyActorRef['system']
type Schedule = System['scheduler']['schedule']

/** The id of an actor that was spawned without one: XState counts them, in each process from 0. */
const COUNTED = /^x:\d+$/

/** Has the actors that are spawned without an id from now on get none that a restored actor of the same system has. */
export function keepSpawnIdsApart(system: System, restored: readonly PersistedSnapshot[]): void {
  const taken = new Set(restored.flatMap(countedIdsIn))
  if (taken.size === 0) return
  const counting = system as unknown as { _bookId: () => string }
  const book = counting._bookId
  // Named first: see replaceSchedule.
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
 * Replaces the function by which a system's actors schedule delayed events. Returns XState's own.
 *
 * V8 allocates a closure that is written where a property is assigned in the old generation, and with it keeps all that the
 * closure sees until a full collection. So a closure gets a name or is passed first. Without that a task leaves 8.4 kB
 * behind instead of 1.0 (Node 24; `test/runtime/left-behind.test.ts` measures it).
 */
export function replaceSchedule({ scheduler }: System, replacement: Schedule): Schedule {
  const schedule = scheduler.schedule.bind(scheduler)
  scheduler.schedule = replacement
  return schedule
}
