import { type ActorLogic, type AnyActorLogic, type AnyActorRef, type AnyStateMachine, type EventObject, fromPromise, type Snapshot } from 'xstate'
import type { Agent } from '../../../runtime/agent/define-agent.ts'

interface Player {
  readonly self: AnyActorRef
  readonly resolve: (output: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Replaces the work of a task in a test. */
export interface WorkDouble {
  readonly work: Exclude<Agent['work'], undefined>
  /** Ends an actor with its output, or with an Error. */
  end(actor: string, result: unknown): void
  /** Lets an actor send an event to the chart. */
  tell(event: EventObject): void
  /** Drops the actors after the process has ended. */
  clear(): void
}

/** The actors of a chart under test: they do nothing, and end on demand. */
export class StubActors implements WorkDouble {
  readonly work: AnyStateMachine
  readonly #players = new Map<string, Player>()

  constructor(machine: AnyStateMachine) {
    const played = fromPromise<unknown>(({ self }) => new Promise((resolve, reject) => this.#players.set(self.id, { self, resolve, reject })))
    this.work = withActors(machine, played)
  }

  end(actor: string, result: unknown): void {
    const player = this.#players.get(actor)
    this.#players.delete(actor)
    if (result instanceof Error) player?.reject(result)
    else player?.resolve(result)
  }

  tell(event: EventObject): void {
    const [player] = this.#players.values()
    player?.self._parent?.send(event)
  }

  clear(): void {
    this.#players.clear()
  }
}

/** An actor that never ends. */
export const endless = fromPromise(() => new Promise(() => {}))

/** Ends an actor of the logic `ending`, as the event of its end says. */
export function endActor(actor: AnyActorRef, { output, error, type }: EventObject & { readonly output?: unknown; readonly error?: unknown }): void {
  actor.send({ type: END, output, error, isError: type.startsWith('xstate.error.') })
}

const END = 'its test ends it'

interface End extends EventObject {
  readonly output: unknown
  readonly error: unknown
  readonly isError: boolean
}

/** An actor that ends when it is told to. */
export const ending: ActorLogic<Snapshot<unknown>, End> = {
  transition: (snapshot, { type, output, error, isError }) => {
    if (type !== END) return snapshot
    if (isError) throw error
    return { ...snapshot, status: 'done', output } as Snapshot<unknown>
  },
  getInitialSnapshot: (_, input) => ({ status: 'active', output: undefined, error: undefined, input }) as Snapshot<unknown>,
  getPersistedSnapshot: snapshot => snapshot,
  restoreSnapshot: snapshot => snapshot
}

/** A chart with this logic for all of its named actors. */
export function withActors(machine: AnyStateMachine, logic: AnyActorLogic): AnyStateMachine {
  return machine.provide({ actors: Object.fromEntries(Object.keys(machine.implementations.actors).map(src => [src, logic])) })
}
