import type { AnyActorRef, AnyActorScope, AnyMachineSnapshot, EventObject } from 'xstate'
import { isOwnName, isSnapshotType } from '../../machines/xstate-names.ts'
import { PrivateProperty } from '../primitives/collections.ts'
import type { PersistedSnapshot } from './persisted-snapshot.ts'

type System = AnyActorRef['system']
type Schedule = System['scheduler']['schedule']

/** A system of XState's, with the members that its types do not promise. */
export interface FullSystem extends Omit<System, '_sendInspectionEvent'> {
  _bookId(): string
  _set(name: string, actor: AnyActorRef): void
  _unregister(actor: AnyActorRef): void
  _relay(source: AnyActorRef | undefined, target: AnyActorRef, event: EventObject): void
  _sendInspectionEvent(event: { readonly type: string; readonly [member: string]: unknown }): void
}

/** Id of an actor that was spawned without one: XState counts them from 0 in each process. */
const COUNTED = /^x:\d+$/

/** Skips the counted ids of restored actors for actors that are spawned without an id in the same system. */
export function keepSpawnIdsApart(system: System, restored: readonly PersistedSnapshot[]): void {
  const used = new Set(restored.flatMap(countedIdsIn))
  if (used.size === 0) return
  const counting = system as unknown as FullSystem
  const book = counting._bookId.bind(counting)
  // Declared before the assignment: see replaceSchedule.
  const bookFree = () => {
    let id = book()
    while (used.has(id)) id = book()
    return id
  }
  counting._bookId = bookFree
}

function countedIdsIn({ children = {} }: PersistedSnapshot): string[] {
  return Object.entries(children).flatMap(([id, { snapshot }]) => [
    ...(COUNTED.test(id) ? [id] : []),
    ...countedIdsIn(snapshot)
  ])
}

/**
 * Replaces the function that schedules delayed events of a system's actors. Returns XState's own.
 *
 * V8 allocates a closure that is written in a property assignment in the old generation, and keeps everything that the
 * closure references until a full collection. So declare the closure first, or pass it as an argument. Otherwise a task
 * leaves 8.4 kB behind instead of 1.0 (Node 24; `test/runtime/work/left-behind.test.ts` measures it).
 */
export function replaceSchedule({ scheduler }: System, replacement: Schedule): Schedule {
  const schedule = scheduler.schedule.bind(scheduler)
  scheduler.schedule = replacement
  return schedule
}

/**
 * Frees the id of the newest delayed event of an actor, so that `cancel` does not find the event: a second event gets
 * the id, and is canceled.
 */
export function takeId(schedule: Schedule, source: AnyActorRef, id: string): void {
  schedule(source, source, { type: 'taskchart.id.taken' }, 0, id)
  source.system.scheduler.cancel(source, id)
}

/**
 * Starts a restored root actor. XState has each restored actor of `onSnapshot` send its snapshot to its parent again,
 * which has handled it already; these are left out.
 */
export function startRestored(root: AnyActorRef): void {
  const system = root.system as unknown as FullSystem
  const relay = system._relay.bind(system)
  const relayNews: FullSystem['_relay'] = (source, target, event) => {
    if (!isSnapshotType(event.type)) relay(source, target, event)
  }
  system._relay = relayNews
  root.start()
  system._relay = relay
}

/** How many inspectors a system has. */
const inspections = new PrivateProperty<System, { count: number }>()

/**
 * Counts the inspectors of a system from now on, so that compiled charts report to it only while it has one: see
 * {@link isInspected}. `count` is how many it has already. Saves 8 % of the bytes of a task (Node 24; bench/README.md).
 */
export function countInspectors(system: System, count: number): void {
  const inspect = system.inspect.bind(system)
  const inspected = { count }
  inspections.set(system, inspected)
  // Declared before the assignment: see replaceSchedule.
  const inspectCounted: System['inspect'] = observer => {
    const inspection = inspect(observer)
    let isOver = false
    inspected.count += 1
    return {
      unsubscribe: () => {
        if (!isOver) inspected.count -= 1
        isOver = true
        inspection.unsubscribe()
      }
    }
  }
  system.inspect = inspectCounted
}

/** Whether a system has an inspector, or may have one. */
export function isInspected(system: System): boolean {
  return inspections.get(system)?.count !== 0
}

type Action = Parameters<AnyActorScope['actionExecutor']>[0]

/** Methods for a scope in place of its own; each gets that scope first. */
export interface ScopeChanges {
  readonly defer?: (scope: AnyActorScope, run: () => void) => void
  readonly emit?: (scope: AnyActorScope, event: EventObject) => void
  readonly actionExecutor?: (scope: AnyActorScope, action: Action) => void
}

/**
 * A scope with other methods. It is a class, and its closures are no members of a literal, because V8 would allocate
 * them in the old generation: see {@link replaceSchedule}.
 */
export class ChangedScope implements AnyActorScope {
  readonly self: AnyActorRef
  readonly id: string
  readonly sessionId: string
  readonly logger: AnyActorScope['logger']
  readonly system: System
  readonly stopChild: AnyActorScope['stopChild']
  readonly defer: AnyActorScope['defer']
  readonly emit: AnyActorScope['emit']
  /** XState replaces it during a microstep. */
  actionExecutor: AnyActorScope['actionExecutor']
  readonly hasOwnExecutor: boolean

  constructor(scope: AnyActorScope, { defer, emit, actionExecutor }: ScopeChanges) {
    this.self = scope.self
    this.id = scope.id
    this.sessionId = scope.sessionId
    this.logger = scope.logger
    this.system = scope.system
    this.stopChild = scope.stopChild
    this.defer = defer ? run => defer(scope, run) : scope.defer
    this.emit = emit ? event => emit(scope, event) : scope.emit
    this.actionExecutor = actionExecutor ? action => actionExecutor(scope, action) : scope.actionExecutor
    this.hasOwnExecutor = actionExecutor !== undefined
  }
}

/**
 * Whether the executor of a scope, whose actor has started, would only call the effect of an action: it is XState's
 * own, and nobody inspects the system.
 */
export function onlyCalls(scope: AnyActorScope): boolean {
  return scope instanceof ChangedScope && !scope.hasOwnExecutor && !isInspected(scope.system)
}

/**
 * Runs a transition of a machine atomically. Custom actions and deferred effects (actors to start, events to send,
 * words to emit) run only after the transition has completed. A transition that throws has no effects.
 */
export function atomicStep(
  scope: AnyActorScope,
  step: (scope: AnyActorScope) => AnyMachineSnapshot
): AnyMachineSnapshot {
  const held: (() => void)[] = []
  let hold = (run: () => void): void => {
    held.push(run)
  }
  const snapshot = step(
    new ChangedScope(scope, {
      defer: (_, run) => hold(() => scope.defer(run)),
      actionExecutor: (_, action) =>
        isOwnName(action.type) ? scope.actionExecutor(action) : hold(() => scope.actionExecutor(action))
    })
  )
  // XState runs the actions of the initial transition later, when the actor starts.
  hold = run => run()
  for (const run of held) run()
  return snapshot
}
