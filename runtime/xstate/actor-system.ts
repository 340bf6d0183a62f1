import {
  createActor,
  fromTransition,
  toObserver,
  type AnyActorRef,
  type AnyTransitionDefinition,
  type EventObject,
  type InspectionEvent
} from 'xstate'
import type { PersistedSnapshot } from './persisted-snapshot.ts'
import { countedOf } from './transition-counter.ts'

type System = AnyActorRef['system']
type Clock = System['_clock']
type Schedule = System['scheduler']['schedule']
type Observer = Parameters<System['inspect']>[0]

/** A system of XState's, with the parts that its types do not promise. `test/runtime/xstate/compiled-logic.test.ts` compares it with a {@link LeanSystem}. */
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
  const taken = new Set(restored.flatMap(countedIdsIn))
  if (taken.size === 0) return
  const counting = system as unknown as { _bookId: () => string }
  const book = counting._bookId
  // Declared before the assignment: see replaceSchedule.
  const bookFree = () => {
    let id = book()
    while (taken.has(id)) id = book()
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
 * V8 allocates a closure that is written in a property assignment in the old generation, and keeps everything that the closure
 * references until a full collection. So declare the closure first, or pass it as an argument. Otherwise a task leaves 8.4 kB behind
 * instead of 1.0 (Node 24; `test/runtime/work/left-behind.test.ts` measures it).
 */
export function replaceSchedule({ scheduler }: System, replacement: Schedule): Schedule {
  const schedule = scheduler.schedule.bind(scheduler)
  scheduler.schedule = replacement
  return schedule
}

/** Takes its id from the newest delayed event of an actor with this id: `cancel` does not find the event then. A second event takes the id, and is canceled. */
export function takeId(schedule: Schedule, source: AnyActorRef, id: string): void {
  schedule(source, source, { type: 'taskchart.id.taken' }, 0, id)
  source.system.scheduler.cancel(source, id)
}

/**
 * Starts a restored root actor. XState has each restored actor of `onSnapshot` send its snapshot to its parent again, which has taken it
 * already; these are left out.
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
 * The options of the root actor of a context. They are no object literal, because V8 learns from a burst of tasks that literals live long.
 * From then on it allocates them in the old generation, and each keeps its whole context until a full collection. A streamed event then
 * takes a sixth more CPU time (Node 24, `--trace-gc-nvp` with and without `--no-allocation-site-pretenuring`).
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

/** Hears of the error that ended an actor. */
export interface ErrorListener {
  failed(error: unknown): void
}

/** Tells a listener of the error that ends an actor, without the literals of `subscribe`: see {@link RootOptions}. */
export function hearError(
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

  /** Also counts the transitions of a microstep: of charts that are not compiled, and of all charts while they are inspected. */
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
