import { readingCost, type FairQueue } from '../../runtime/access/fair-queue.ts'
import type { FrameRate } from './frame-limits.ts'
import type { Intake } from './intake.ts'

/** Bytes of memory that a waiting message takes beside its own. */
const MESSAGE_BYTES = 128

/** One message of a client, and whether it came within the rate of its connection. */
export interface Frame {
  readonly data: Buffer
  readonly isBinary: boolean
  readonly pace: ReturnType<FrameRate['count']>
}

/** The parts of an inbox: `user` is the caller among all who take turns, `read` reads one message. */
export interface InboxOptions {
  readonly turns: FairQueue
  readonly user: object | string
  readonly intake: Intake
  readonly read: (frame: Frame) => void
}

/**
 * The messages of one connection that have come and are not parsed, in their order. One turn of the event loop parses as much as
 * its {@link FairQueue} allow, of all callers by turns. While messages wait the connection is not read.
 */
export class Inbox {
  readonly #options: InboxOptions
  #waiting: Frame[] = []
  #bytes = 0

  constructor(options: InboxOptions) {
    this.#options = options
  }

  /** The memory that waiting messages take, in bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /** Reads a message, now if none waits and this turn has room, otherwise later. */
  add(frame: Frame): void {
    const { intake, read } = this.#options
    const isFirst = this.#waiting.length === 0
    const turn = isFirst ? this.#turnOf(frame) : undefined
    if (isFirst && !turn) return read(frame)
    this.#waiting.push(frame)
    this.#bytes += frame.data.length + MESSAGE_BYTES
    if (!turn) return
    intake.pause('turn')
    void this.#readWaiting(turn)
  }

  /** Drops what waits: the connection is closed. */
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
      this.#bytes -= frame.data.length + MESSAGE_BYTES
      read(frame)
      const [next] = this.#waiting
      turn = next && this.#turnOf(next)
    }
    intake.resume('turn')
  }

  #turnOf({ data }: Frame): Promise<void> | undefined {
    const { turns, user } = this.#options
    return turns.next(user, readingCost(data.length))
  }
}
