import type { WebSocket } from 'ws'

/** Why nothing is read from a client: it does not read its answers, it is over a quota, its frames wait for their turn, or there is no room for its message. */
export type PauseReason = 'unread answers' | 'quota' | 'turn' | 'no room'

/** Pauses the reading of one connection. The connection is read again when none of the reasons is left. */
export class Intake {
  readonly #socket: Pick<WebSocket, 'pause' | 'resume'>
  readonly #reasons = new Set<PauseReason>()

  constructor(socket: Pick<WebSocket, 'pause' | 'resume'>) {
    this.#socket = socket
  }

  isPausedFor(reason: PauseReason): boolean {
    return this.#reasons.has(reason)
  }

  pause(reason: PauseReason): void {
    this.#reasons.add(reason)
    this.#socket.pause()
  }

  /** Ends one reason. May be called without a pause. */
  resume(reason: PauseReason): void {
    if (this.#reasons.delete(reason) && this.#reasons.size === 0) this.#socket.resume()
  }
}
