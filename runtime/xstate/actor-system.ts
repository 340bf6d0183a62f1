import {
  type AnyActorRef,
  type AnyActorScope,
  type AnyMachineSnapshot,
  type AnyTransitionDefinition,
  createActor,
  type EventObject,
  fromTransition,
  type InspectionEvent,
  toObserver
} from 'xstate'
import type { PersistedSnapshot } from './persisted-snapshot.ts'
import { countedOf } from './transition-counter.ts'

type System = AnyActorRef['system']
type Clock = System['_clock']
type Schedule = System['scheduler']['schedule']
type Observer = Parameters<System['inspect']>[0]

/**
 * A system of XState's, with the parts that its types do not promise. `test/runtime/xstate/compiled-logic.test.ts`
 * compares it with a {@link LeanSystem}.
 */
export interface FullSystem extends Omit<System, '_clock' | '_logger' | '_sendInspectionEvent'> {
  readonly _clock: unknown
  readonly _logger: unknown
  _bookId(): string
  _set(name: string, actor: AnyActorRef): void
  _unregister(actor: AnyActorRef): void
  _relay(source: AnyActorRef | undefined, target: AnyActorRef, event: EventObject): void
  _sendInspectionEvent(event: { readonly type: string; readonly [member: string]: unknown }): void
}

const idle = createActor(fromTransition(state => state, 0))

/** A system of XState's, for its defaults and its counter of ids. */
export const defaults = idle.system as FullSystem

/** Id of an actor that was spawned without one: XState counts them from 0 in each process. */
const COUNTED = /^x:\d+$/

/** Skips the counted ids of restored actors for actors that are spawned without an id in the same system. */
export function keepSpawnIdsApart(system: System, restored: readonly PersistedSnapshot[]): void {
  const used = new Set(restored.flatMap(countedIdsIn))
  if (used.size === 0) return
  const counting = system as unknown as { _bookId: () => string }
  const book = counting._bookId
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
  const system = root.system as FullSystem
  const relay = system._relay.bind(system)
  const relayNews: FullSystem['_relay'] = (source, target, event) => {
    if (!event.type.startsWith('xstate.snapshot.')) relay(source, target, event)
  }
  system._relay = relayNews
  root.start()
  system._relay = relay
}

/**
 * The options of the root actor of a context. They are no object literal, because V8 learns from a burst of tasks that
 * literals live long. From then on it allocates them in the old generation, and each keeps its whole context until a
 * full collection. A streamed event then takes a sixth more CPU time (Node 24, `--trace-gc-nvp` with and without
 * `--no-allocation-site-pretenuring`).
 */
export class RootOptions<Input> {
  readonly id = 'context'
  readonly clock: Clock
  readonly input: Input
  readonly snapshot: unknown

  constructor(clock: Clock, input: Input, snapshot: unknown) {
    this.clock = clock
    this.input = input
    this.snapshot = snapshot
  }
}

/** Gets the error that ended an actor. */
export interface ErrorListener {
  failed(error: unknown): void
}

/**
 * Notifies a listener of the error that ends an actor, without the literals of `subscribe`: see {@link RootOptions}.
 */
export function setErrorListener(
  actor: AnyActorRef & { errorListener?: ErrorListener | undefined },
  listener: ErrorListener
): void {
  if ('errorListener' in actor) actor.errorListener = listener
  else actor.subscribe({ error: error => listener.failed(error) })
}

/** The system of a lean actor. XState's own system is made for the first delayed event or `systemId`. */
export class LeanSystem {
  readonly _clock: unknown
  readonly _logger: unknown
  readonly #root: AnyActorRef
  #full: FullSystem | undefined
  #inspectors: Set<ReturnType<typeof toObserver>> | undefined

  constructor(root: AnyActorRef, clock: unknown, logger: unknown) {
    this.#root = root
    this._clock = clock
    this._logger = logger
  }

  get isInspected(): boolean {
    return this.#inspectors !== undefined && this.#inspectors.size > 0
  }

  get #made(): FullSystem {
    if (this.#full) return this.#full
    this.#full = createActor(idle.logic, { clock: this._clock, logger: this._logger } as object).system as FullSystem
    const relay: FullSystem['_relay'] = (source, target, event) => this._relay(source, target, event)
    this.#full._relay = relay
    return this.#full
  }

  _bookId(): string {
    return defaults._bookId()
  }

  _register(sessionId: string): string {
    return sessionId
  }

  _unregister(actor: AnyActorRef): void {
    this.#full?._unregister(actor)
  }

  _set(name: string, actor: AnyActorRef): void {
    this.#made._set(name, actor)
  }

  _relay(
    source: AnyActorRef | undefined,
    target: AnyActorRef & { _send?(event: EventObject): void },
    event: EventObject
  ): void {
    if (this.isInspected)
      this._sendInspectionEvent({ type: '@xstate.event', sourceRef: source, actorRef: target, event })
    target._send?.(event)
  }

  /**
   * Also counts the transitions of a microstep: of charts that are not compiled, and of all charts while they are
   * inspected.
   */
  _sendInspectionEvent(event: { readonly type: string; readonly [member: string]: unknown }): void {
    if (event.type === '@xstate.microstep')
      for (const transition of event._transitions as AnyTransitionDefinition[])
        countedOf(transition)?.take(event.actorRef as AnyActorRef)
    if (!this.isInspected) return
    const seen = { ...event, rootId: this.#root.sessionId } as InspectionEvent
    this.#inspectors?.forEach(({ next }) => next?.(seen))
  }

  inspect(observer: Observer): { unsubscribe(): void } {
    const inspector = toObserver(observer as never)
    const inspectors = (this.#inspectors ??= new Set())
    inspectors.add(inspector)
    return { unsubscribe: () => void inspectors.delete(inspector) }
  }

  get(name: string): AnyActorRef | undefined {
    return this.#full?.get(name)
  }

  getAll(): object {
    return this.#full?.getAll() ?? {}
  }

  getSnapshot(): object {
    return this.#made.getSnapshot()
  }

  start(): void {
    this.#full?.start()
  }

  /** Its own scheduler. */
  get scheduler(): this {
    return this
  }

  schedule(...given: Parameters<System['scheduler']['schedule']>): void {
    this.#made.scheduler.schedule(...given)
  }

  cancel(source: AnyActorRef, id: string): void {
    this.#full?.scheduler.cancel(source, id)
  }

  cancelAll(actor: AnyActorRef): void {
    this.#full?.scheduler.cancelAll(actor)
  }
}

type Action = Parameters<AnyActorScope['actionExecutor']>[0]
type Executable = { exec?(info: unknown, params: unknown): void }

/**
 * XState's own parts of an actor, which its types do not promise. `test/runtime/xstate/compiled-logic.test.ts` compares
 * both kinds of actors.
 */
export interface ActorParts {
  observers: Set<unknown>
  eventListeners: Map<string, Set<(event: EventObject) => void>>
  _deferred: { push(run: () => void): void }
  _processingStatus: number
  _process(event: EventObject): void
  _initState(snapshot: unknown): void
}

/** XState's `_processingStatus` of an actor that runs. */
export const RUNNING = 1

/** Whether the actor of a scope has no inspector now. */
export function runsUnseen({ system, self }: AnyActorScope): boolean {
  return (
    system instanceof LeanSystem && !system.isInspected && (self as unknown as ActorParts)._processingStatus === RUNNING
  )
}

/** Methods for a scope in place of its own; each gets that scope first. */
export interface ScopeChanges {
  readonly defer?: (scope: AnyActorScope, run: () => void) => void
  readonly emit?: (scope: AnyActorScope, event: EventObject) => void
  readonly actionExecutor?: (scope: AnyActorScope, action: Action) => void
}

/** A scope with other methods. */
function scopeWith(scope: AnyActorScope, changes: ScopeChanges): AnyActorScope {
  if (scope instanceof LeanScope) return new ChangedScope(scope, changes) as AnyActorScope
  const { defer, emit, actionExecutor } = changes
  return {
    ...scope,
    ...(defer && { defer: run => defer(scope, run) }),
    ...(emit && { emit: event => emit(scope, event) }),
    ...(actionExecutor && { actionExecutor: action => actionExecutor(scope, action) })
  }
}

/** `scopeWith(scope, changes)`, once for each actor. */
export function scopeOnceWith(scope: AnyActorScope, changes: ScopeChanges): AnyActorScope {
  if (!(scope instanceof LeanScope)) return scopeWith(scope, changes)
  return (scope.changed ??= scopeWith(scope as AnyActorScope, changes))
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
    scopeWith(scope, {
      defer: (_, run) => hold(() => scope.defer(run)),
      actionExecutor: (_, action) =>
        action.type.startsWith('xstate.') ? scope.actionExecutor(action) : hold(() => scope.actionExecutor(action))
    })
  )
  // XState runs the actions of the initial transition later, when the actor starts.
  hold = run => run()
  for (const run of held) run()
  return snapshot
}

/** The scope of a lean actor: one object, whose methods XState's has as closures. */
export class LeanScope {
  readonly self: AnyActorRef
  /** See {@link scopeOnceWith}. */
  changed: AnyActorScope | undefined = undefined

  constructor(self: AnyActorRef) {
    this.self = self
  }

  get id(): string {
    return this.self.id
  }

  get sessionId(): string {
    return this.self.sessionId
  }

  get system(): AnyActorRef['system'] {
    return this.self.system
  }

  get logger(): unknown {
    return (this.self as unknown as { readonly logger: unknown }).logger
  }

  get #parts(): ActorParts {
    return this.self as unknown as ActorParts
  }

  defer(run: () => void): void {
    this.#parts._deferred.push(run)
  }

  stopChild(child: AnyActorRef): void {
    if (child._parent !== this.self)
      throw new Error(`Cannot stop child actor ${child.id} of ${this.id} because it is not a child`)
    ;(child as unknown as { _stop(): void })._stop()
  }

  emit(event: EventObject): void {
    const { eventListeners } = this.#parts
    if (eventListeners.size === 0) return
    for (const listener of [...(eventListeners.get(event.type) ?? []), ...(eventListeners.get('*') ?? [])]) {
      try {
        listener(event)
      } catch (error) {
        setTimeout(() => {
          throw error
        })
      }
    }
  }

  actionExecutor(action: Action): void {
    if (this.#parts._processingStatus === RUNNING) this.#execute(action)
    else this.defer(() => this.#execute(action))
  }

  #execute(action: Action): void {
    const { type, params, info } = action
    ;(this.system as unknown as LeanSystem)._sendInspectionEvent({
      type: '@xstate.action',
      actorRef: this.self,
      action: { type, params }
    })
    ;(action as Executable).exec?.(info, params)
  }
}

class ChangedScope extends LeanScope {
  readonly #scope: LeanScope
  readonly #changes: ScopeChanges

  constructor(scope: LeanScope, changes: ScopeChanges) {
    super(scope.self)
    this.#scope = scope
    this.#changes = changes
  }

  override defer(run: () => void): void {
    if (this.#changes.defer) this.#changes.defer(this.#scope as AnyActorScope, run)
    else this.#scope.defer(run)
  }

  override emit(event: EventObject): void {
    if (this.#changes.emit) this.#changes.emit(this.#scope as AnyActorScope, event)
    else this.#scope.emit(event)
  }

  override actionExecutor(action: Action): void {
    if (this.#changes.actionExecutor) this.#changes.actionExecutor(this.#scope as AnyActorScope, action)
    else this.#scope.actionExecutor(action)
  }
}
