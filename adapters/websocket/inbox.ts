import { readingCost, type FairQueue } from '../../runtime/access/call-scheduler.ts'
import { Gathering } from '../../runtime/primitives/event-loop.ts'
import type { FrameRate, ReadPause } from './frame-limits.ts'

/** The memory overhead of a waiting message, in bytes. */
const MESSAGE_BYTES = 128

/** One message of a client, and whether it arrived within the rate. */
export interface ReceivedFrame {
  readonly data: Buffer | string
  /** Its size in bytes. */
  readonly bytes: number
  readonly isBinary: boolean
  readonly rate: ReturnType<FrameRate['count']>
}

/**
 * The parts of an inbox. `user`: the caller for the queue; `connection`: the identity of the connection; `read`:
 * processes one message.
 */
export interface InboxOptions {
  readonly turns: FairQueue
  readonly user: object | string
  readonly connection: object
  readonly readPause: ReadPause
  readonly read: (frame: ReceivedFrame) => void
}

/**
 * The unparsed messages of one connection, in order. The {@link FairQueue} schedules parsing fairly among all callers,
 * with a limit per turn of the event loop. While messages wait, the connection is not read.
 */
export class Inbox {
  /** The inboxes with messages of this round of the event loop. */
  static readonly #gathering = new Gathering<Inbox>(inbox => inbox.readWaiting())
  readonly #options: InboxOptions
  #waiting: ReceivedFrame[] = []
  #bytes = 0
  /** Whether a turn is scheduled for the first waiting message. */
  #isTurnScheduled = false

  constructor(options: InboxOptions) {
    this.#options = options
  }

  /** The memory of waiting messages, in bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /**
   * Reads a message: now if none waits and this round has budget left, otherwise later. With `mayWait`, other clients
   * may go first.
   */
  add(frame: ReceivedFrame, mayWait: boolean): void {
    const isFirst = this.#waiting.length === 0
    const isAlone = !mayWait || Inbox.#gathering.isSame(this.#options.connection)
    const turn = isFirst && isAlone ? this.#turnOf(frame) : undefined
    if (isFirst && isAlone && !turn) return this.#options.read(frame)
    this.#waiting.push(frame)
    this.#bytes += frame.bytes + MESSAGE_BYTES
    if (turn) void this.#readAfter(turn)
    else if (isFirst) Inbox.#gathering.add(this)
  }

  /** Reads the waiting messages, up to one that has to wait for its turn. */
  readWaiting(): void {
    if (this.#isTurnScheduled) return
    for (let [next] = this.#waiting; next; [next] = this.#waiting) {
      const turn = this.#turnOf(next)
      if (turn) return void this.#readAfter(turn)
      this.#readFirst()
    }
    this.#options.readPause.resume('turn')
  }

  /** Drops waiting messages of a closed connection. */
  clear(): void {
    this.#waiting = []
    this.#bytes = 0
  }

  async #readAfter(turn: Promise<void>): Promise<void> {
    this.#options.readPause.pause('turn')
    this.#isTurnScheduled = true
    await turn
    this.#isTurnScheduled = false
    this.#readFirst()
    this.readWaiting()
  }

  #readFirst(): void {
    const frame = this.#waiting.shift()
    if (!frame) return
    this.#bytes -= frame.bytes + MESSAGE_BYTES
    this.#options.read(frame)
  }

  #turnOf({ bytes }: ReceivedFrame): Promise<void> | undefined {
    const { turns, user } = this.#options
    return turns.next(user, readingCost(bytes))
  }
}
