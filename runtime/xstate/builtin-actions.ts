import {
  type ActionArgs,
  type AnyActorLogic,
  type AnyActorRef,
  type AnyActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  assign,
  cancel,
  createActor,
  emit,
  type EventObject,
  type MachineContext,
  raise,
  sendParent,
  sendTo,
  spawnChild,
  stopChild,
  type UnknownAction
} from 'xstate'
import { evaluateGuard } from 'xstate/guards'
import { OWN_ACTION } from '../../machines/xstate-names.ts'
import { appendItem, NONE } from '../primitives/collections.ts'
import { onlyCalls } from './actor-system.ts'

type Guard = Parameters<typeof evaluateGuard>[0]

/** XState's `enqueueActions` at run time; `collect` is the author's code. */
interface EnqueueActions {
  readonly collect: (args: object, params: unknown) => void
}

/** The list of the `collect` that runs now. */
let collected: readonly UnknownAction[] | undefined

const collect = (action: UnknownAction) => {
  if (collected) collected = appendItem(collected, action)
}

const adding =
  (make: (...given: never[]) => unknown) =>
  (...given: never[]) =>
    collect(make(...given) as UnknownAction)

/**
 * The argument `enqueue` of every `collect`: XState makes nine functions for each. Outside of `collect` it does
 * nothing.
 */
const enqueue = Object.assign((action: UnknownAction) => collect(action), {
  assign: adding(assign),
  cancel: adding(cancel),
  raise: adding(raise),
  sendTo: adding(sendTo),
  sendParent: adding(sendParent),
  spawnChild: adding(spawnChild),
  stopChild: adding(stopChild),
  emit: adding(emit)
})

type Args = ActionArgs<MachineContext, EventObject, EventObject>
type Resolved = [snapshot: AnyMachineSnapshot, params: unknown, actions: UnknownAction[] | undefined]
type Resolver = (action: never, step: Macrostep, params: unknown) => unknown

/**
 * Run-time shape of XState's own actions (assign, emit, sendTo, spawnChild, …): functions with `resolve` and `execute`.
 * XState's types do not promise this shape, nor how inspectors are called. This file relies on both;
 * `test/runtime/xstate/compiled-logic.test.ts` compares it with XState.
 */
interface BuiltinAction {
  readonly type: string
  resolve(
    scope: AnyActorScope,
    snapshot: AnyMachineSnapshot,
    args: Args,
    params: unknown,
    action: unknown,
    step: Macrostep
  ): Resolved
  retryResolve?(scope: AnyActorScope, snapshot: AnyMachineSnapshot, params: unknown): void
  readonly execute?: Effect
}

type Effect = (scope: AnyActorScope, params: unknown) => void

/** Result of a resolver that leaves the action to XState. */
const LEFT = Symbol('left to XState')

const { enqueueActions: ENQUEUE } = OWN_ACTION

/**
 * Resolvers that replace XState's: for actions that change the snapshot, because XState recomputes all states for each
 * of them; the others allocate less.
 */
const RESOLVERS: Readonly<Record<string, Resolver>> = {
  [OWN_ACTION.assign]: assigned,
  [OWN_ACTION.emit]: emitted,
  [OWN_ACTION.spawnChild]: spawned,
  [OWN_ACTION.stopChild]: stopped,
  [ENQUEUE]: gathered
}

/** An action of a chart, with its implementation. */
export interface PreparedAction {
  readonly type: string
  readonly params: unknown
  /** The author's function, which may be missing. */
  readonly custom: unknown
  readonly builtin: BuiltinAction | undefined
  /** Resolver of this file, if any. */
  readonly resolver: Resolver | undefined
  /** The effect of a built-in action, if it has one. */
  readonly effect: Effect | undefined
}

/** Looks up the implementations of actions. Done once for the actions of the chart itself. */
export function prepareActions(actions: readonly UnknownAction[], machine: AnyStateMachine): PreparedAction[] {
  return actions.map(action => {
    const known: unknown = typeof action === 'function' ? action : machine.implementations.actions[nameOf(action)]
    const params: unknown = typeof action === 'object' && 'params' in action ? action.params : undefined
    return isBuiltin(known)
      ? {
          type: known.type,
          params,
          custom: undefined,
          builtin: known,
          resolver: RESOLVERS[known.type],
          effect: known.execute
        }
      : { type: nameOf(action), params, custom: known, builtin: undefined, resolver: undefined, effect: undefined }
  })
}

/**
 * Runs actions in order, as XState does. `invoked`: ids of the actors that they start, so that earlier actions may send
 * to them.
 */
export function performActions(actions: readonly PreparedAction[], step: Macrostep, invoked?: readonly string[]): void {
  const retries: [BuiltinAction, unknown][] | undefined = invoked && []
  step.deferredActorIds = invoked
  performAll(actions, step, retries)
  for (const [action, params] of retries ?? []) action.retryResolve?.(step.scope, step.snapshot, params)
}

function performAll(
  actions: readonly PreparedAction[],
  step: Macrostep,
  retries: [BuiltinAction, unknown][] | undefined
): void {
  const { scope } = step
  for (const { type, params: wanted, custom, builtin, resolver, effect } of actions) {
    const given: unknown = typeof wanted === 'function' ? wanted(step.given) : wanted
    if (!builtin) {
      scope.actionExecutor({ type, info: step.args, params: given, exec: custom as () => void })
      continue
    }
    let params: unknown = resolver ? resolver(builtin as never, step, given) : LEFT
    let enqueued = type === ENQUEUE ? (params as UnknownAction[]) : undefined
    if (params === LEFT) {
      const { snapshot } = step
      const resolved = builtin.resolve(scope, snapshot, step.args, given, builtin, step)
      if (resolved[0] !== snapshot) Object.assign(step.own, resolved[0])
      params = resolved[1]
      enqueued = resolved[2]
    }
    if (retries && builtin.retryResolve) retries.push([builtin, params])
    if (effect) execute(type, effect, step, params)
    if (enqueued) performAll(prepareActions(enqueued, step.snapshot.machine), step, retries)
  }
}

/** Runs the effect of an action, without an executor that would only call it. */
function execute(type: string, effect: Effect, step: Macrostep, params: unknown): void {
  const { scope } = step
  if (!step.isInitial && onlyCalls(scope)) effect(scope, params)
  else scope.actionExecutor({ type, info: step.args, params, exec: effect.bind(undefined, scope, params) })
}

const { type: STOP_CHILD, execute: stopEffect } = stopChild('') as unknown as Required<BuiltinAction>

/** Stops the children of a chart that ends. Its snapshot keeps them. */
export function stopChildren(step: Macrostep): void {
  const { children } = step.snapshot
  for (const id in children) execute(STOP_CHILD, stopEffect, step, children[id])
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

function assigned(
  { assignment }: { assignment: Assigner | Record<string, unknown> },
  step: Macrostep,
  params: unknown
): unknown {
  const given = new AssignArgs(step.args)
  try {
    const context: MachineContext = { ...given.context }
    if (typeof assignment === 'function') Object.assign(context, assignment(given, params))
    else for (const name of Object.keys(assignment)) context[name] = valueOf(assignment[name], given, params)
    step.own.context = context
    return undefined
  } catch (error) {
    if (error !== SPAWNS) throw error
    return LEFT
  }
}

function valueOf(assigner: unknown, args: AssignArgs, params: unknown): unknown {
  return typeof assigner === 'function' ? (assigner as Assigner)(args, params) : assigner
}

function emitted(
  { event }: { event: EventObject | ((args: Args, params: unknown) => EventObject) },
  step: Macrostep,
  params: unknown
): { event: EventObject } {
  return { event: typeof event === 'function' ? event(step.args, params) : event }
}

interface Spawn {
  readonly id: string | ((args: Args) => string)
  readonly systemId: string | undefined
  readonly src: string | AnyActorLogic
  readonly input: unknown
  readonly syncSnapshot: boolean
}

/** Inline logic is left to XState. */
function spawned({ id, systemId, src, input, syncSnapshot }: Spawn, step: Macrostep): unknown {
  const {
    event,
    scope: { self },
    snapshot: { context, children, machine }
  } = step
  const logic = typeof src === 'string' ? (machine.implementations.actors[src] as AnyActorLogic | undefined) : src
  if (!logic) return LEFT
  const name = typeof id === 'function' ? id(step.args) : id
  const given: unknown = typeof input === 'function' ? input({ context, event, self }) : input
  const actorRef = createActor(logic, { id: name, src, parent: self, syncSnapshot, systemId, input: given } as object)
  const all = typeof id === 'function' ? tableOf(children) : copyOf(children)
  all[name] = actorRef
  step.own.children = all
  return { id, systemId, actorRef, src, input: given }
}

function stopped({ actorRef }: { actorRef: unknown }, step: Macrostep, params: unknown): unknown {
  const given: unknown = typeof actorRef === 'function' ? actorRef(step.args, params) : actorRef
  const { children } = step.snapshot
  const child = (typeof given === 'string' ? children[given] : given) as AnyActorRef | undefined
  step.own.children = child ? othersOf(children, child.id) : children
  return child
}

/** The actions that an `enqueueActions` enqueues. */
function gathered(
  { collect: by }: EnqueueActions,
  { event, snapshot, args: { context, self, system } }: Macrostep,
  params: unknown
): readonly UnknownAction[] {
  const check = (guard: Guard) => evaluateGuard(guard, context, event, snapshot)
  const outer = collected
  collected = NONE
  try {
    by({ context, event, enqueue, check, self, system }, params)
    return collected
  } finally {
    collected = outer
  }
}

type Children = Record<string, AnyActorRef>

/** The children of a chart that has none. */
export const NO_CHILDREN: Children = Object.freeze({})

function copyOf(children: Children): Children {
  return Object.getPrototypeOf(children) === null ? tableOf(children) : { ...children }
}

/**
 * A mutable copy without a prototype, for names that are used once. In an ordinary object V8 makes a hidden class for
 * each such name. A task then leaves 1.3 kB behind instead of 1.0 (Node 24; `test/runtime/work/left-behind.test.ts`
 * measures it).
 */
function tableOf(children: Children): Children {
  return Object.assign(Object.create(null), children)
}

function othersOf(children: Children, left: string): Children {
  for (const id in children) {
    if (id === left) continue
    const others = copyOf(children)
    delete others[left]
    return others
  }
  return NO_CHILDREN
}

function isBuiltin(action: unknown): action is BuiltinAction {
  return typeof action === 'function' && 'resolve' in action
}

function nameOf(action: UnknownAction): string {
  if (typeof action === 'function') return action.name || '(anonymous)'
  return typeof action === 'string' ? action : action.type
}

/**
 * A macrostep under way. Its snapshot is copied once, before the first change, unless inspectors see the microsteps;
 * its other members are made on first use. XState's own actions read `internalQueue` and `deferredActorIds`.
 */
export class Macrostep {
  readonly scope: AnyActorScope
  /** Whether the actor has not started. */
  readonly isInitial: boolean
  event: EventObject
  snapshot: AnyMachineSnapshot
  /** Whether the snapshot has changed; the reader sets it back. */
  isChanged = false
  deferredActorIds: readonly string[] | undefined = undefined
  #isOwn = false
  #raised: EventObject[] | undefined = undefined
  #args: Args | undefined = undefined
  #given: Pick<Args, 'context' | 'event'> | undefined = undefined

  constructor(snapshot: AnyMachineSnapshot, event: EventObject, scope: AnyActorScope, isInitial = false) {
    this.snapshot = snapshot
    this.event = event
    this.scope = scope
    this.isInitial = isInitial
  }

  /** The snapshot to change. */
  get own(): { -readonly [Member in keyof AnyMachineSnapshot]: AnyMachineSnapshot[Member] } {
    if (!this.#isOwn) this.snapshot = { ...this.snapshot } as AnyMachineSnapshot
    this.#isOwn = true
    this.isChanged = true
    return this.snapshot
  }

  /** Call it when the snapshot is visible to others, and must not change any more. */
  shown(): void {
    this.#isOwn = false
  }

  /** Raised events, in order. */
  get internalQueue(): EventObject[] {
    return (this.#raised ??= [])
  }

  nextRaised(): EventObject | undefined {
    return this.#raised?.shift()
  }

  /** Arguments of actions; the same object until the context changes. */
  get args(): Args {
    const {
      event,
      scope: { self, system },
      snapshot: { context }
    } = this
    if (!this.#args || this.#args.context !== context || this.#args.event !== event)
      this.#args = { context, event, self, system }
    return this.#args
  }

  /** Arguments of functions that give parameters. */
  get given(): Pick<Args, 'context' | 'event'> {
    const {
      event,
      snapshot: { context }
    } = this
    if (!this.#given || this.#given.context !== context || this.#given.event !== event) this.#given = { context, event }
    return this.#given
  }
}
