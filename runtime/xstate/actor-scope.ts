import type { AnyActorRef, AnyActorScope, AnyMachineSnapshot, EventObject } from 'xstate'
import { LeanSystem } from './actor-system.ts'

type Action = Parameters<AnyActorScope['actionExecutor']>[0]
type Executable = { exec?(info: unknown, params: unknown): void }

/** XState's own parts of an actor, which its types do not promise. `test/runtime/xstate/compiled-logic.test.ts` compares both kinds of actors. */
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

/** Whether no inspector sees what the actor of a scope does now. */
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
export function scopeWith(scope: AnyActorScope, changes: ScopeChanges): AnyActorScope {
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
 * Runs a transition of a machine atomically. Custom actions and deferred effects (actors to start, events to send, words to emit) run
 * only after the transition has completed. A transition that throws has no effects.
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
