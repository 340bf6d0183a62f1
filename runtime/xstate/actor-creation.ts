import { Actor, type ActorOptions, type AnyActorLogic, type AnyActorRef, type AnyActorScope } from 'xstate'
import type { PersistedSnapshot } from './persisted-snapshot.ts'

/** What an actor may be made with here. */
export type NewActorOptions<Logic extends AnyActorLogic> = Pick<ActorOptions<Logic>, 'id' | 'src' | 'parent' | 'input' | 'clock' | 'snapshot'>

/** What XState's constructor makes of its options. Its types do not show all of it. */
interface Made {
  logic: AnyActorLogic
  id: string
  src: unknown
  options: object
  system: Actor<AnyActorLogic>['system'] & { readonly _clock: unknown; readonly _logger: unknown; _bookId(): string; _sendInspectionEvent(seen: object): void }
  sessionId: string
  clock: unknown
  logger: unknown
  _parent: AnyActorRef | undefined
  _syncSnapshot: boolean | undefined
  readonly _actorScope: { -readonly [Member in keyof AnyActorScope]: unknown }
  _initState(persisted: unknown): void
}

/** Logic of an actor that has none yet. */
const UNBORN: AnyActorLogic = { getInitialSnapshot: nothing, transition: nothing, getPersistedSnapshot: nothing }

function nothing(): never {
  return undefined as never
}

/**
 * XState's `createActor`, an order of magnitude faster on Node 20: its constructor copies the options to behind its own in
 * a way for which V8 before that of Node 22 makes hidden classes anew for every actor, 3 µs of the 85 that a task takes.
 * So the actor is made without them, and told them afterwards. `test/runtime/compiled-logic.test.ts` compares it with
 * XState's. To be removed with the support of Node 20.
 */
export function newActor<Logic extends AnyActorLogic>(logic: Logic, options: NewActorOptions<Logic>): Actor<Logic> {
  const { id, src, parent, clock, snapshot } = options
  const actor = new Actor(UNBORN, clock && { clock })
  const made = actor as unknown as Made
  made.options = Object.assign({}, actor.options, options)
  made.logic = logic
  made.src = src ?? logic
  if (parent) adopt(made, parent)
  made.id = id ?? made.sessionId
  made._actorScope.id = made.id
  if (parent) made.system._sendInspectionEvent({ type: '@xstate.actor', actorRef: made })
  made._initState(snapshot)
  return actor as Actor<Logic>
}

/** Makes an actor a child, as charts spawn them: with a place in its parent's system, where there was one of its own. */
function adopt(made: Made, parent: AnyActorRef): void {
  made._parent = parent
  made._syncSnapshot = false
  made.system = parent.system as Made['system']
  made.sessionId = made.system._bookId()
  made.clock = made.system._clock
  made.logger = made.system._logger
  const { sessionId, logger, system } = made
  Object.assign(made._actorScope, { sessionId, logger, system })
}

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
