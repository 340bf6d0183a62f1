import type { ClockView } from '../virtual-clock.ts'

/** A place that messages pass, or do not pass for a while: a network that is parted. */
export class Gate {
  #isShut = false
  #waiting: (() => void)[] = []

  get isShut(): boolean {
    return this.#isShut
  }

  shut(): void {
    this.#isShut = true
  }

  open(): void {
    this.#isShut = false
    for (const pass of this.#waiting.splice(0)) pass()
  }

  whenOpen(pass: () => void): void {
    this.#waiting.push(pass)
  }
}

/** What a way is made of. */
export interface WayOptions {
  /** The time of the one who gets the messages. */
  readonly clock: ClockView
  readonly gate: Gate
  readonly latencyMs: () => number
}

/** A message under way. */
interface Sent {
  readonly arrive: () => void
  isThere: boolean
}

/** One direction of a connection: messages arrive late and in order. Behind a shut gate they wait, as TCP has it. */
export class Way {
  readonly #options: WayOptions
  readonly #sent: Sent[] = []
  #lastMs = 0
  #isOver = false
  #isWaiting = false

  constructor(options: WayOptions) {
    this.#options = options
  }

  send(arrive: () => void): void {
    const { clock, latencyMs } = this.#options
    const nowMs = clock.now()
    const message = { arrive, isThere: false }
    this.#sent.push(message)
    this.#lastMs = Math.max(nowMs + latencyMs(), this.#lastMs)
    clock.setTimeout(() => {
      message.isThere = true
      this.#pass()
    }, this.#lastMs - nowMs)
  }

  /** What has not arrived yet is lost. */
  end(): void {
    this.#isOver = true
  }

  #pass(): void {
    const { clock, gate } = this.#options
    while (!gate.isShut && !this.#isOver && this.#sent[0]?.isThere) this.#sent.shift()?.arrive()
    if (!this.#sent[0]?.isThere || this.#isOver || this.#isWaiting) return
    this.#isWaiting = true
    gate.whenOpen(() => {
      this.#isWaiting = false
      clock.setTimeout(() => this.#pass(), 0)
    })
  }
}
