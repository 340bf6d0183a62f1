import { createActor } from 'xstate'
import type { ActionArgs, AnyActorLogic, AnyActorRef, AnyActorScope, AnyMachineSnapshot, AnyTransitionDefinition, EventObject, MachineContext, UnknownAction } from 'xstate'

/** In what an action is performed: `internalQueue` takes the events that the chart raises to itself. */
export interface Step {
  readonly event: EventObject
  readonly scope: AnyActorScope
  readonly internalQueue: EventObject[]
  /** Ids of the actors that start with these actions, so that even the first may send to them. */
  readonly deferredActorIds?: readonly string[] | undefined
}

type Args = ActionArgs<MachineContext, EventObject, EventObject>
type Resolved = [snapshot: AnyMachineSnapshot, params: unknown, actions: UnknownAction[] | undefined]

/**
 * XState's own actions (assign, emit, sendTo, spawnChild, …) as they are at run time: functions that carry how they are
 * resolved and executed. XState's types do not promise this shape, nor how the system is told of a step: this file is the
 * only one that relies on both, and `test/runtime/compiled-logic.test.ts` compares all of it with XState itself.
 */
interface BuiltinAction {
  readonly type: string
  resolve(scope: AnyActorScope, snapshot: AnyMachineSnapshot, args: Args, params: unknown, action: unknown, step: Step): Resolved
  retryResolve?(scope: AnyActorScope, snapshot: AnyMachineSnapshot, params: unknown): void
  execute?(scope: AnyActorScope, params: unknown): void
}

/** Those that change a snapshot are resolved here: XState works out all states anew with each of them. */
const RESOLVERS: Readonly<Record<string, (action: never, scope: AnyActorScope, snapshot: AnyMachineSnapshot, args: Args, params: unknown) => Resolved | undefined>> = {
  'xstate.assign': assigned,
  'xstate.spawnChild': spawned,
  'xstate.stopChild': stopped
}

/** Performs actions one after the other, as XState does, and gives the snapshot that they lead to: the same one if they changed nothing. */
export function perform(actions: readonly UnknownAction[], before: AnyMachineSnapshot, step: Step): AnyMachineSnapshot {
  if (actions.length === 0) return before
  const retries: [BuiltinAction, unknown][] | undefined = step.deferredActorIds && []
  const after = performAll(actions, before, step, retries)
  for (const [action, params] of retries ?? []) action.retryResolve?.(step.scope, after, params)
  return after
}

/** Tells the system's inspectors of a step that a chart took. */
export function tellInspectors(snapshot: AnyMachineSnapshot, { event, scope }: Step, transitions: readonly AnyTransitionDefinition[]): void {
  const system = scope.system as unknown as { _sendInspectionEvent(seen: object): void }
  system._sendInspectionEvent({ type: '@xstate.microstep', actorRef: scope.self, event, snapshot, _transitions: transitions })
}

function performAll(actions: readonly UnknownAction[], before: AnyMachineSnapshot, step: Step, retries: [BuiltinAction, unknown][] | undefined): AnyMachineSnapshot {
  const { event, scope } = step
  let snapshot = before
  for (const action of actions) {
    const known: unknown = typeof action === 'function' ? action : snapshot.machine.implementations.actions[nameOf(action)]
    const args: Args = { context: snapshot.context, event, self: scope.self, system: scope.system }
    const given = paramsOf(action, snapshot, event)
    if (!isBuiltin(known)) {
      scope.actionExecutor({ type: nameOf(action), info: args, params: given, exec: known as () => void })
      continue
    }
    const resolved = RESOLVERS[known.type]?.(known as never, scope, snapshot, args, given) ?? known.resolve(scope, snapshot, args, given, known, step)
    const [next, params, enqueued] = resolved
    snapshot = next
    if (known.retryResolve) retries?.push([known, params])
    if (known.execute) scope.actionExecutor({ type: known.type, info: args, params, exec: known.execute.bind(undefined, scope, params) })
    if (enqueued) snapshot = performAll(enqueued, snapshot, step, retries)
  }
  return snapshot
}

type Assigner = (args: AssignArgs, params: unknown) => unknown

const SPAWNS = Symbol('An assignment that spawns is left to XState.')

class AssignArgs implements Args {
  readonly context: MachineContext
  readonly event: EventObject
  readonly self: Args['self']
  readonly system: Args['system']

  constructor({ context, event, self, system }: Args) {
    this.context = context
    this.event = event
    this.self = self
    this.system = system
  }

  get spawn(): never {
    throw SPAWNS
  }
}

function assigned({ assignment }: { assignment: Assigner | Record<string, unknown> }, _: AnyActorScope, snapshot: AnyMachineSnapshot, args: Args, params: unknown): Resolved | undefined {
  const given = new AssignArgs(args)
  const valueOf = (assigner: unknown): unknown => (typeof assigner === 'function' ? assigner(given, params) : assigner)
  try {
    const update = typeof assignment === 'function' ? valueOf(assignment) : Object.fromEntries(Object.entries(assignment).map(([name, member]) => [name, valueOf(member)]))
    return [{ ...snapshot, context: { ...snapshot.context, ...(update as object) } } as AnyMachineSnapshot, undefined, undefined]
  } catch (error) {
    if (error !== SPAWNS) throw error
    return undefined
  }
}

interface Spawn {
  readonly id: string | ((args: Args) => string)
  readonly systemId: string | undefined
  readonly src: string | AnyActorLogic
  readonly input: unknown
  readonly syncSnapshot: boolean
}

/** Logic that stands in the chart itself, without a name, is left to XState. */
function spawned({ id, systemId, src, input, syncSnapshot }: Spawn, { self }: AnyActorScope, snapshot: AnyMachineSnapshot, args: Args): Resolved | undefined {
  const { context, children, machine } = snapshot
  const logic = typeof src === 'string' ? (machine.implementations.actors[src] as AnyActorLogic | undefined) : src
  if (!logic) return undefined
  const name = typeof id === 'function' ? id(args) : id
  const given: unknown = typeof input === 'function' ? input({ context, event: args.event, self }) : input
  const actorRef = createActor(logic, { id: name, src, parent: self, syncSnapshot, systemId, input: given } as object)
  return [{ ...snapshot, children: { ...children, [name]: actorRef } } as AnyMachineSnapshot, { id, systemId, actorRef, src, input: given }, undefined]
}

function stopped({ actorRef }: { actorRef: unknown }, _: AnyActorScope, snapshot: AnyMachineSnapshot, args: Args, params: unknown): Resolved {
  const given: unknown = typeof actorRef === 'function' ? actorRef(args, params) : actorRef
  const child = (typeof given === 'string' ? snapshot.children[given] : given) as AnyActorRef | undefined
  const children = { ...snapshot.children }
  if (child) delete children[child.id]
  return [{ ...snapshot, children } as AnyMachineSnapshot, child, undefined]
}

function isBuiltin(action: unknown): action is BuiltinAction {
  return typeof action === 'function' && 'resolve' in action
}

function nameOf(action: UnknownAction): string {
  if (typeof action === 'function') return action.name || '(anonymous)'
  return typeof action === 'string' ? action : action.type
}

function paramsOf(action: UnknownAction, { context }: AnyMachineSnapshot, event: EventObject): unknown {
  if (typeof action !== 'object' || !('params' in action)) return undefined
  const { params } = action
  return typeof params === 'function' ? params({ context, event }) : params
}
