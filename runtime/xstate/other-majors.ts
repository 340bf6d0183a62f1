import type { AnyActorLogic, AnyStateMachine } from 'xstate'
import { isMachine } from './persisted-snapshot.ts'

/** The versions of XState that taskchart runs on. `package.json` has the same range. */
const NEEDED = 'XState 5 (5.33.3 or newer, below 6)'

/** Throws TypeError if a chart, or another logic of actors, was made with another major of XState. `what` names it. */
export function refuseOtherMajor(logic: unknown, what: string): void {
  const major = otherMajorOf(logic)
  if (major !== undefined)
    throw new TypeError(
      `${what} was made with XState ${major}, but taskchart runs on ${NEEDED}. Make it with that: npm install xstate@5.`
    )
}

/** Refuses actors of a chart that another major of XState made, also in the charts among the actors. */
export function refuseOtherActors(machine: AnyStateMachine, known = new Set([machine])): void {
  const actors = Object.entries(machine.implementations.actors as Readonly<Record<string, AnyActorLogic>>)
  for (const [src, logic] of actors) {
    refuseOtherMajor(logic, `The actor ${src}`)
    if (isMachine(logic) && !known.has(logic)) refuseOtherActors(logic, known.add(logic))
  }
}

/** The major that made a logic, if it is not 5: by its members, since a project may have several copies of XState. */
function otherMajorOf(logic: unknown): string | undefined {
  if (typeof logic !== 'object' || logic === null || 'implementations' in logic || !('transition' in logic))
    return undefined
  if ('initialState' in logic) return '4'
  return 'initialTransition' in logic || ('root' in logic && 'provide' in logic) ? '6 or newer' : undefined
}
