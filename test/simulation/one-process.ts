import type { ClientSocket } from '../../adapters/client/transports/websocket/client-socket.ts'
import type { Runtime } from '../../runtime/index.ts'
import type { Disk } from './disk.ts'
import { Life, type LifeServices } from './life.ts'
import type { Processes } from './processes.ts'
import type { ClockView, VirtualClock } from './virtual-clock.ts'
import type { Wire } from './wire.ts'

/** What a process needs. */
export interface OneProcessServices extends LifeServices {
  readonly clock: VirtualClock
  /** The time of the world, which no process ends. */
  readonly network: ClockView
  readonly disk: Disk
}

/** A server on its own: one process at a time. */
export class OneProcess implements Processes {
  readonly #services: OneProcessServices
  #life: Life

  constructor(services: OneProcessServices) {
    this.#services = services
    this.#life = this.#born()
  }

  get isAway(): boolean {
    return this.#life.isOver
  }

  get progress(): string {
    return String(this.#life.isOver)
  }

  accept(wireTo: () => Wire, principal: string): ClientSocket | undefined {
    return this.#life.isOver ? undefined : this.#life.accept(wireTo(), principal)
  }

  use(run: (runtime: Runtime) => void): void {
    if (!this.#life.isOver) run(this.#life.runtime)
  }

  kill(downMs: number): void {
    if (this.#life.isOver) return
    this.#life.kill()
    this.#services.network.setTimeout(() => this.#startAgain(), downMs)
  }

  restart(downMs: number): void {
    const life = this.#life
    if (life.isOver || life.isClosing) return
    void life.close().then(() => this.#services.network.setTimeout(() => this.#startAgain(), downMs))
  }

  calmDown(): void {}

  close(): Promise<void> {
    return this.#life.close()
  }

  abandon(): void {
    this.#life.kill()
  }

  #born(): Life {
    const { clock, disk } = this.#services
    const [own, around] = [clock.view(), clock.view()]
    return new Life(this.#services, { store: disk.open(around), clock: own, own, around })
  }

  #startAgain(): void {
    this.#services.journal.note('starts')
    this.#life = this.#born()
  }
}
