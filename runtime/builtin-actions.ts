import type { AnyActorScope, AnyMachineSnapshot, AnyTransitionDefinition, EventObject, UnknownAction } from 'xstate'

/** In what an action is performed: `queue` takes the events that the chart raises to itself. */
export interface Step {
  readonly event: EventObject
  readonly scope: AnyActorScope
  readonly queue: EventObject[]
}

/**
 * XState's own actions (assign, emit, sendTo, spawnChild, …) as they are at run time: functions that carry how they are
 * resolved and executed. XState's types do not promise this shape. This file is the only one that relies on it, and on
 * how the system is told of a step; `test/runtime/compiled-logic.test.ts` compares all of it with XState itself.
 */
interface BuiltinAction {
  readonly type: string
  resolve(scope: AnyActorScope, snapshot: AnyMachineSnapshot, args: object, params: unknown, action: unknown, extra: object): [AnyMachineSnapshot, unknown, UnknownAction[]?]
  retryResolve?(scope: AnyActorScope, snapshot: AnyMachineSnapshot, params: unknown): void
  execute?(scope: AnyActorScope, params: unknown): void
}

type Retries = [BuiltinAction, unknown][]

/** These answer with a changed copy of the snapshot, of which only context and children are new. */
const CHANGING: ReadonlySet<string> = new Set(['xstate.assign', 'xstate.spawnChild', 'xstate.stopChild'])

/**
 * Performs actions one after the other, as XState does, and gives the snapshot that they lead to: the same one if they
 * changed nothing. `invoked` are the actors that start with these actions, so that even the first may send to them.
 */
export function perform(actions: readonly UnknownAction[], before: AnyMachineSnapshot, step: Step, invoked?: readonly string[]): AnyMachineSnapshot {
  if (actions.length === 0) return before
  const retries: Retries = []
  const after = performAll(actions, before, step, { internalQueue: step.queue, deferredActorIds: invoked }, retries)
  if (invoked) for (const [action, params] of retries) action.retryResolve?.(step.scope, after, params)
  return after
}

/** Tells the system's inspectors of a step that a chart took. */
export function tellInspectors(snapshot: AnyMachineSnapshot, { event, scope }: Step, transitions: readonly AnyTransitionDefinition[]): void {
  const system = scope.system as unknown as { _sendInspectionEvent(seen: object): void }
  system._sendInspectionEvent({ type: '@xstate.microstep', actorRef: scope.self, event, snapshot, _transitions: transitions })
}

function performAll(actions: readonly UnknownAction[], before: AnyMachineSnapshot, step: Step, extra: object, retries: Retries): AnyMachineSnapshot {
  const { event, scope } = step
  let snapshot = before
  for (const action of actions) {
    const known: unknown = typeof action === 'function' ? action : snapshot.machine.implementations.actions[nameOf(action)]
    const args = { context: snapshot.context, event, self: scope.self, system: scope.system }
    const params = paramsOf(action, snapshot, event)
    if (!isBuiltin(known)) {
      scope.actionExecutor({ type: nameOf(action), info: args, params, exec: known as () => void })
      continue
    }
    const given = CHANGING.has(known.type) ? bare(snapshot) : snapshot
    const [result, resolved, enqueued] = known.resolve(scope, given, args, params, known, extra)
    if (result !== given) snapshot = { ...snapshot, context: result.context, children: result.children } as AnyMachineSnapshot
    if (known.retryResolve) retries.push([known, resolved])
    if (known.execute) scope.actionExecutor({ type: known.type, info: args, params: resolved, exec: known.execute.bind(undefined, scope, resolved) })
    if (enqueued) snapshot = performAll(enqueued, snapshot, step, extra, retries)
  }
  return snapshot
}

/** A snapshot without states, which costs XState little to copy. */
function bare({ machine, context, children }: AnyMachineSnapshot): AnyMachineSnapshot {
  return { machine, context, children, _nodes: [] } as unknown as AnyMachineSnapshot
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
