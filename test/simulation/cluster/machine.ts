import type { ClockView, Pace, VirtualClock } from '../virtual-clock.ts'
import { Gate } from './way.ts'

/** The computer of a node: its clock, and what reaches it. It may hang, and may be cut off. */
export class Machine {
  /** The name under which others find it. The next process there has it too. */
  readonly host: string
  /** The name of this process alone. */
  readonly name: string
  /** As the node reads it. It may be wrong. */
  readonly clock: ClockView
  /** When messages and outside events reach the node: never wrong. */
  readonly arrivals: ClockView
  /** The way to the database. */
  readonly database = new Gate()
  #isHung = false

  constructor(host: string, life: number, time: VirtualClock, pace: Pace) {
    this.host = host
    this.name = `${host}.${life}`
    this.clock = time.view(pace)
    this.arrivals = time.view()
  }

  get isHung(): boolean {
    return this.#isHung
  }

  /** The process stops in the middle of whatever it does. */
  hang(): void {
    this.#isHung = true
    this.clock.pause()
    this.arrivals.pause()
  }

  /** It goes on, and knows nothing of the pause. */
  goOn(): void {
    if (!this.#isHung) return
    this.#isHung = false
    this.clock.goOn()
    this.arrivals.goOn()
  }

  /** The process is killed. */
  stop(): void {
    this.clock.stop()
    this.arrivals.stop()
  }
}
