import type { ActionArgs, AnyActorScope, AnyMachineSnapshot, EventObject, MachineContext } from 'xstate'

type Args = ActionArgs<MachineContext, EventObject, EventObject>

/**
 * A macrostep under way. Its snapshot is copied once, before the first change, unless inspectors see the microsteps; its other members
 * are made on first use. XState's own actions read `internalQueue` and `deferredActorIds`.
 */
export class Macrostep {
  readonly scope: AnyActorScope
  event: EventObject
  snapshot: AnyMachineSnapshot
  /** Whether the snapshot has changed; set back by whoever asks. */
  isChanged = false
  deferredActorIds: readonly string[] | undefined = undefined
  #isOwn = false
  #raised: EventObject[] | undefined = undefined
  #args: Args | undefined = undefined
  #given: Pick<Args, 'context' | 'event'> | undefined = undefined

  constructor(snapshot: AnyMachineSnapshot, event: EventObject, scope: AnyActorScope) {
    this.snapshot = snapshot
    this.event = event
    this.scope = scope
  }

  /** The snapshot to change. */
  get own(): { -readonly [Member in keyof AnyMachineSnapshot]: AnyMachineSnapshot[Member] } {
    if (!this.#isOwn) this.snapshot = { ...this.snapshot } as AnyMachineSnapshot
    this.#isOwn = true
    this.isChanged = true
    return this.snapshot
  }

  /** Call it when somebody has seen the snapshot, which then stays as it is. */
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
