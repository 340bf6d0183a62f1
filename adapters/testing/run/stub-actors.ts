import { type AnyActorLogic, type AnyActorRef, type AnyStateMachine, type EventObject, fromPromise } from 'xstate'
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

/** A chart with this logic for all of its named actors. */
export function withActors(machine: AnyStateMachine, logic: AnyActorLogic): AnyStateMachine {
  return machine.provide({ actors: Object.fromEntries(Object.keys(machine.implementations.actors).map(src => [src, logic])) })
}
