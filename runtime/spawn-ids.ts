import type { AnyActorRef } from 'xstate'
import type { PersistedSnapshot } from './chart-fit.ts'

/** The id of an actor that was spawned without one: XState counts them, in each process from 0. */
const COUNTED = /^x:\d+$/

/** Has the actors that are spawned without an id from now on get none that a restored actor of the same system has. */
export function keepSpawnIdsApart(system: AnyActorRef['system'], restored: readonly PersistedSnapshot[]): void {
  const taken = new Set(restored.flatMap(countedIdsIn))
  if (taken.size === 0) return
  const counting = system as unknown as { _bookId: () => string }
  const book = counting._bookId
  // Named first, since it would be long-lived: see delayed-events.ts.
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
