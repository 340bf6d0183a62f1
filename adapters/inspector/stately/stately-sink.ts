import type * as stately from '@statelyai/inspect'
import type { AnyActorRef, AnyStateMachine, InspectionEvent } from 'xstate'
import { writtenConfig } from '../../../runtime/xstate/written-chart.ts'
import type { LiveActors } from '../../../runtime/contexts/observers.ts'
import { checkPackages } from '../../peers/installed-packages.ts'
import type { Sink } from '../looking.ts'
import { shownEvent, type Redact } from '../recorder/seen-step.ts'

/** The used part of Stately's package, an optional peer. */
export type Stately = Pick<typeof stately, 'createInspector'>

/** Loads it. Throws TypeError with the command that installs it. */
export async function loadStately(load: () => Promise<Stately> = () => import('@statelyai/inspect')): Promise<Stately> {
  checkPackages(['@statelyai/inspect'])
  try {
    return await load()
  } catch (cause) {
    throw new TypeError(
      "Stately's inspector needs its package. Install it: npm install --save-dev @statelyai/inspect",
      { cause }
    )
  }
}

/**
 * Sends Stately's inspection protocol: actors with their definitions, events and snapshots, each as JSON text, made by Stately's own
 * `createInspector`. Since that reads actors later, it gets copies of their present state, without secrets.
 */
export class StatelySink implements Sink {
  readonly #inspect: (event: InspectionEvent) => void
  readonly #redact: Redact
  /** New actors, which have no snapshot yet. */
  readonly #unborn = new Map<string, AnyActorRef>()

  constructor({ createInspector }: Stately, redact: Redact, send: (text: string) => void) {
    const { inspect } = createInspector({ send: event => send(JSON.stringify(event)) })
    this.#inspect = event => inspect.next?.(event)
    this.#redact = redact
  }

  began({ root }: LiveActors): void {
    this.#tellAll(root)
  }

  inspected(event: InspectionEvent): void {
    const ref = event.actorRef as AnyActorRef
    if (event.type === '@xstate.actor') {
      this.#unborn.set(ref.sessionId, ref)
      return
    }
    if (event.type !== '@xstate.event' && event.type !== '@xstate.snapshot') return
    if (this.#unborn.delete(ref.sessionId)) this.#tellActor(ref)
    const shown = { ...event, event: shownEvent(event.event, this.#redact) }
    this.#inspect(
      shown.type === '@xstate.snapshot'
        ? ({ ...shown, snapshot: this.#snapshot(shown.snapshot) } as InspectionEvent)
        : shown
    )
  }

  #tellAll(ref: AnyActorRef): void {
    this.#tellActor(ref)
    const { children = {} } = ref.getSnapshot() as { readonly children?: Readonly<Record<string, AnyActorRef>> }
    for (const child of Object.values(children)) this.#tellAll(child)
  }

  #tellActor(ref: AnyActorRef): void {
    const { id, sessionId, _parent: parent, system } = ref
    const snapshot = this.#snapshot(ref.getSnapshot())
    const actorRef = {
      id,
      sessionId,
      _parent: parent && { sessionId: parent.sessionId },
      logic: { config: this.#config(ref) },
      getSnapshot: () => snapshot
    }
    this.#inspect({
      type: '@xstate.actor',
      actorRef,
      rootId: rootOf(ref).sessionId,
      system
    } as unknown as InspectionEvent)
  }

  /** A chart's definition. Its initial context is data, and is redacted. */
  #config({ logic }: AnyActorRef & { readonly logic?: Partial<AnyStateMachine> }): object | undefined {
    const config = logic?.config && writtenConfig(logic.config)
    return config && 'context' in config && typeof config.context !== 'function'
      ? { ...config, context: this.#redact(config.context) }
      : config
  }

  #snapshot(snapshot: unknown): unknown {
    const { status, value, context, output, error, input } = snapshot as Readonly<Record<string, unknown>>
    const told = error instanceof Error ? error.message : error
    return { status, ...(this.#redact({ value, context, output, input, error: told }) as object) }
  }
}

function rootOf(ref: AnyActorRef): AnyActorRef {
  return ref._parent ? rootOf(ref._parent) : ref
}
