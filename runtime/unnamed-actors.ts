import type { AnyActorLogic, AnyActorRef } from 'xstate'
import { familyOf, hostOf } from './actor-host.ts'
import { KeptWith } from './kept-with.ts'

/** The name under which XState keeps an actor that `spawnChild` made without an id. */
const UNNAMED = 'undefined'

/** The newest actor of that name, with its parent. */
const newest = new KeptWith<AnyActorRef, AnyActorRef>()

/**
 * Logic of which no two actors without an id live below one parent: `spawnChild` gives all of them one name, and XState
 * forgets all but the last, which run on unseen and would be lost with the process. The second breaks its work.
 */
export function oneUnnamed(logic: AnyActorLogic): AnyActorLogic {
  return {
    ...logic,
    start: (snapshot, scope) => {
      const { self, system } = scope
      if (!takesPlace(self)) return logic.start?.(snapshot, scope)
      hostOf(system).crash(familyOf(self), new TypeError("Two actors without an id take each other's place. Give each one: spawnChild('paint', { id: 'painting' })."))
    }
  }
}

function takesPlace(actor: AnyActorRef): boolean {
  const parent = actor._parent
  const children: Record<string, AnyActorRef> | undefined = parent?.getSnapshot().children
  if (!parent || !children || (actor.id !== UNNAMED && children[actor.id] === actor)) return false
  const before = newest.get(parent)
  newest.set(parent, actor)
  return before?.getSnapshot().status === 'active'
}
