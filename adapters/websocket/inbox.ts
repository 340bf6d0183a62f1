import type { WebSocket } from 'ws'
import { readingCost, type FairQueue } from '../../runtime/access/fair-queue.ts'
import type { FrameRate } from './frame-limits.ts'

/** The memory overhead of a waiting message, in bytes. */
const MESSAGE_BYTES = 128

/** One message of a client, and whether it arrived within the rate. */
export interface Frame {
  readonly data: Buffer | string
  /** Its size in bytes. */
  readonly bytes: number
  readonly isBinary: boolean
  readonly pace: ReturnType<FrameRate['count']>
}

/** The parts of an inbox: `user` is the caller that the queue schedules, `read` processes one message. */
export interface InboxOptions {
  readonly turns: FairQueue
  readonly user: object | string
  readonly intake: Intake
  readonly read: (frame: Frame) => void
}

/**
 * The unparsed messages of one connection, in order. The {@link FairQueue} schedules parsing fairly among all callers, with a
 * limit per turn of the event loop. While messages wait, the connection is not read.
 */
export class Inbox {
  readonly #options: InboxOptions
  #waiting: Frame[] = []
  #bytes = 0

  constructor(options: InboxOptions) {
    this.#options = options
  }

  /** The memory of waiting messages, in bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /** Reads a message: now if none waits and this turn has room, otherwise later. */
  add(frame: Frame): void {
    const { intake, read } = this.#options
    const isFirst = this.#waiting.length === 0
    const turn = isFirst ? this.#turnOf(frame) : undefined
    if (isFirst && !turn) return read(frame)
    this.#waiting.push(frame)
    this.#bytes += frame.bytes + MESSAGE_BYTES
    if (!turn) return
    intake.pause('turn')
    void this.#readWaiting(turn)
  }

  /** Drops waiting messages of a closed connection. */
  clear(): void {
    this.#waiting = []
    this.#bytes = 0
  }

  async #readWaiting(first: Promise<void>): Promise<void> {
    const { intake, read } = this.#options
    let turn: Promise<void> | undefined = first
    while (this.#waiting.length > 0) {
      if (turn) await turn
      const frame = this.#waiting.shift()
      if (!frame) return
      this.#bytes -= frame.bytes + MESSAGE_BYTES
      read(frame)
      const [next] = this.#waiting
      turn = next && this.#turnOf(next)
    }
    intake.resume('turn')
  }

  #turnOf({ bytes }: Frame): Promise<void> | undefined {
    const { turns, user } = this.#options
    return turns.next(user, readingCost(bytes))
  }
}

/** Why a connection is not read: its client reads no answers or is over a quota, its messages wait, or there is no memory for one. */
type PauseReason = 'unread answers' | 'quota' | 'turn' | 'no room'

/** Pauses the reading of one connection until none of the reasons is left. */
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

  /** Removes a reason. May be called without a pause. */
  resume(reason: PauseReason): void {
    if (this.#reasons.delete(reason) && this.#reasons.size === 0) this.#socket.resume()
  }
}
