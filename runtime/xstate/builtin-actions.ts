import { assign, cancel, emit, raise, sendParent, sendTo, spawnChild, stopChild, type ActionArgs, type AnyActorLogic, type AnyActorRef, type AnyActorScope, type AnyMachineSnapshot, type AnyStateMachine, type EventObject, type MachineContext, type UnknownAction } from 'xstate'
import { evaluateGuard } from 'xstate/guards'
import { newActor, runsUnseen } from './lean-actor.ts'

type Guard = Parameters<typeof evaluateGuard>[0]

/** XState's `enqueueActions` at run time; `collect` is the author's code. */
interface EnqueueActions {
  readonly collect: (args: object, params: unknown) => void
}

/** The list of the `collect` that runs now. */
let collected: UnknownAction[] | undefined

const adding = (make: (...given: never[]) => unknown) => (...given: never[]) => void collected?.push(make(...given) as UnknownAction)

/** The argument `enqueue` of every `collect`: XState makes nine functions for each. Outside of `collect` it does nothing. */
const enqueue = Object.assign((action: UnknownAction) => void collected?.push(action), {
  assign: adding(assign),
  cancel: adding(cancel),
  raise: adding(raise),
  sendTo: adding(sendTo),
  sendParent: adding(sendParent),
  spawnChild: adding(spawnChild),
  stopChild: adding(stopChild),
  emit: adding(emit)
})

/** The actions that an `enqueueActions` enqueues. */
function enqueuedBy(collect: EnqueueActions['collect'], snapshot: AnyMachineSnapshot, args: Args, params: unknown): UnknownAction[] {
  const outer = collected
  const actions: UnknownAction[] = []
  const check = (guard: Guard) => evaluateGuard(guard, snapshot.context, args.event, snapshot)
  collected = actions
  try {
    collect(Object.assign({ enqueue, check }, args), params)
  } finally {
    collected = outer
  }
  return actions
}

/** Scope of a microstep's actions: `internalQueue` receives raised events. */
export interface Step {
  readonly event: EventObject
  readonly scope: AnyActorScope
  readonly internalQueue: EventObject[]
  /** Ids of the actors that these actions start, so that earlier actions may send to them. */
  readonly deferredActorIds: readonly string[] | undefined
}

type Args = ActionArgs<MachineContext, EventObject, EventObject>
type Resolved = [snapshot: AnyMachineSnapshot, params: unknown, actions: UnknownAction[] | undefined]
type Resolver = (action: never, draft: Draft, args: Args, params: unknown) => unknown

/**
 * Run-time shape of XState's own actions (assign, emit, sendTo, spawnChild, …): functions with `resolve` and `execute`. XState's types
 * do not promise this shape, nor how inspectors are called. This file relies on both; `test/runtime/xstate/compiled-logic.test.ts` compares
 * it with XState.
 */
interface BuiltinAction {
  readonly type: string
  resolve(scope: AnyActorScope, snapshot: AnyMachineSnapshot, args: Args, params: unknown, action: unknown, step: Step): Resolved
  retryResolve?(scope: AnyActorScope, snapshot: AnyMachineSnapshot, params: unknown): void
  execute?(scope: AnyActorScope, params: unknown): void
}

/** Result of a resolver that leaves the action to XState. */
const LEFT = Symbol('left to XState')

const ENQUEUE = 'xstate.enqueueActions'

/**
 * Resolvers that replace XState's: for actions that change the snapshot, because XState recomputes all states for each of them, and for
 * `enqueueActions`, to allocate less.
 */
const RESOLVERS: Readonly<Record<string, Resolver>> = { 'xstate.assign': assigned, 'xstate.spawnChild': spawned, 'xstate.stopChild': stopped, [ENQUEUE]: gathered }

/** Copy-on-write snapshot: the one before, until the first change makes a copy. */
export class Draft {
  readonly #before: AnyMachineSnapshot
  #snapshot: AnyMachineSnapshot

  constructor(before: AnyMachineSnapshot) {
    this.#before = before
    this.#snapshot = before
  }

  get snapshot(): AnyMachineSnapshot {
    return this.#snapshot
  }

  /** The snapshot to change. */
  get own(): { -readonly [Member in keyof AnyMachineSnapshot]: AnyMachineSnapshot[Member] } {
    if (this.#snapshot === this.#before) this.#snapshot = { ...this.#before } as AnyMachineSnapshot
    return this.#snapshot
  }
}

/** An action of a chart, with its implementation. */
export interface PreparedAction {
  readonly type: string
  readonly params: unknown
  /** The implementation: a built-in action, or a function of the author's, which may be missing. */
  readonly known: unknown
  /** Resolver of this file, if any. */
  readonly resolver: Resolver | undefined
}

/** Looks up the implementations of actions. Done once for the actions of the chart itself. */
export function prepared(actions: readonly UnknownAction[], machine: AnyStateMachine): PreparedAction[] {
  return actions.map(action => {
    const known: unknown = typeof action === 'function' ? action : machine.implementations.actions[nameOf(action)]
    const params: unknown = typeof action === 'object' && 'params' in action ? action.params : undefined
    return isBuiltin(known)
      ? { type: known.type, params, known, resolver: RESOLVERS[known.type] }
      : { type: nameOf(action), params, known, resolver: undefined }
  })
}

/** Runs actions in order, as XState does. */
export function perform(actions: readonly PreparedAction[], draft: Draft, step: Step): void {
  if (actions.length === 0) return
  const retries: [BuiltinAction, unknown][] | undefined = step.deferredActorIds && []
  performAll(actions, draft, step, retries)
  for (const [action, params] of retries ?? []) action.retryResolve?.(step.scope, draft.snapshot, params)
}

function performAll(actions: readonly PreparedAction[], draft: Draft, step: Step, retries: [BuiltinAction, unknown][] | undefined): void {
  const { event, scope } = step
  const isUnseen = runsUnseen(scope)
  let args: Args = { context: draft.snapshot.context, event, self: scope.self, system: scope.system }
  let seen: { readonly context: MachineContext; readonly event: EventObject } | undefined
  for (let i = 0; i < actions.length; i += 1) {
    const { type, params: wanted, known, resolver } = actions[i] as PreparedAction
    const { snapshot } = draft
    const { context } = snapshot
    if (args.context !== context) {
      args = { context, event, self: scope.self, system: scope.system }
      seen = undefined
    }
    const given: unknown = typeof wanted === 'function' ? wanted((seen ??= { context, event })) : wanted
    if (!isBuiltin(known)) {
      scope.actionExecutor({ type, info: args, params: given, exec: known as () => void })
      continue
    }
    let params: unknown = resolver ? resolver(known as never, draft, args, given) : LEFT
    let enqueued = type === ENQUEUE ? (params as UnknownAction[]) : undefined
    if (params === LEFT) {
      const resolved = known.resolve(scope, snapshot, args, given, known, step)
      if (resolved[0] !== snapshot) Object.assign(draft.own, resolved[0])
      params = resolved[1]
      enqueued = resolved[2]
    }
    if (known.retryResolve) retries?.push([known, params])
    if (known.execute) {
      // Without an inspector XState's executor only calls it.
      if (isUnseen) known.execute(scope, params)
      else scope.actionExecutor({ type, info: args, params, exec: known.execute.bind(undefined, scope, params) })
    }
    if (enqueued) performAll(prepared(enqueued, snapshot.machine), draft, step, retries)
  }
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

function assigned({ assignment }: { assignment: Assigner | Record<string, unknown> }, draft: Draft, args: Args, params: unknown): unknown {
  const given = new AssignArgs(args)
  try {
    const context: MachineContext = Object.assign({}, args.context)
    if (typeof assignment === 'function') Object.assign(context, assignment(given, params))
    else for (const name of Object.keys(assignment)) context[name] = valueOf(assignment[name], given, params)
    draft.own.context = context
    return undefined
  } catch (error) {
    if (error !== SPAWNS) throw error
    return LEFT
  }
}

function valueOf(assigner: unknown, args: AssignArgs, params: unknown): unknown {
  return typeof assigner === 'function' ? (assigner as Assigner)(args, params) : assigner
}

interface Spawn {
  readonly id: string | ((args: Args) => string)
  readonly systemId: string | undefined
  readonly src: string | AnyActorLogic
  readonly input: unknown
  readonly syncSnapshot: boolean
}

/** Inline logic is left to XState. */
function spawned({ id, systemId, src, input, syncSnapshot }: Spawn, draft: Draft, args: Args): unknown {
  const { context, children, machine } = draft.snapshot
  const { self, event } = args
  const logic = typeof src === 'string' ? (machine.implementations.actors[src] as AnyActorLogic | undefined) : src
  if (!logic) return LEFT
  const name = typeof id === 'function' ? id(args) : id
  const given: unknown = typeof input === 'function' ? input({ context, event, self }) : input
  const actorRef = newActor(logic, { id: name, src, parent: self, syncSnapshot, systemId, input: given } as object)
  const all = typeof id === 'function' ? tableOf(children) : othersOf(children)
  all[name] = actorRef
  draft.own.children = all
  return { id, systemId, actorRef, src, input: given }
}

function stopped({ actorRef }: { actorRef: unknown }, draft: Draft, args: Args, params: unknown): unknown {
  const given: unknown = typeof actorRef === 'function' ? actorRef(args, params) : actorRef
  const { children } = draft.snapshot
  const child = (typeof given === 'string' ? children[given] : given) as AnyActorRef | undefined
  draft.own.children = othersOf(children, child)
  return child
}

function gathered({ collect }: EnqueueActions, { snapshot }: Draft, args: Args, params: unknown): UnknownAction[] {
  return enqueuedBy(collect, snapshot, args, params)
}

type Children = Record<string, AnyActorRef>

/** A mutable copy of children, without one of them. */
function othersOf(children: Children, child?: AnyActorRef): Children {
  const others = Object.getPrototypeOf(children) === null ? tableOf(children) : Object.assign({}, children)
  if (child) delete others[child.id]
  return others
}

/**
 * A mutable copy without a prototype, for names that are used once. In an ordinary object V8 makes a hidden class for each such name. A
 * task then leaves 1.3 kB behind instead of 1.0 (Node 24; `test/runtime/work/left-behind.test.ts` measures it).
 */
function tableOf(children: Children): Children {
  return Object.assign(Object.create(null), children)
}

function isBuiltin(action: unknown): action is BuiltinAction {
  return typeof action === 'function' && 'resolve' in action
}

function nameOf(action: UnknownAction): string {
  if (typeof action === 'function') return action.name || '(anonymous)'
  return typeof action === 'string' ? action : action.type
}
