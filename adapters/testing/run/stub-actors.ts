import { fromPromise, type AnyActorRef, type AnyStateMachine, type EventObject } from 'xstate'
import type { Agent } from '../../../runtime/agent/define-agent.ts'
import { withActors } from './with-actors.ts'

interface Player {
  readonly self: AnyActorRef
  readonly resolve: (output: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Who plays the work of a task in a test. */
export interface WorkDouble {
  /** The work that is played. */
  readonly work: Exclude<Agent['work'], undefined>
  /** Ends an actor: by its output, or by an Error. */
  end(actor: string, result: unknown): void
  /** Has an actor send an event to the chart. */
  tell(event: EventObject): void
  /** Everybody leaves: the process has ended. */
  clear(): void
}

/** The actors of a chart under test: they do nothing of their own, and end as they are told. */
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
