import type { ClientSocket } from '../../adapters/client/transports/websocket/client-socket.ts'
import type { Runtime } from '../../runtime/index.ts'
import type { ClockView } from './virtual-clock.ts'
import type { Wire } from './wire.ts'

/** The processes of a world, which serve its clients. */
export interface Processes {
  /** Whether one of them is away. */
  readonly isAway: boolean
  /** Changes with everything that matters of them. */
  readonly progress: string
  /** Has one of them take a connection, whose handshake said who calls. `undefined` if nobody is there. */
  accept(wireTo: (serverClock?: ClockView) => Wire, principal: string): ClientSocket | undefined
  /** Has one of them do something, unless nobody is there. */
  use(run: (runtime: Runtime) => void): void
  /** Kills one of them, and starts another after a while. */
  kill(downMs: number): void
  /** Ends one of them in order and starts another. */
  restart(downMs: number): void
  /** From now on there are no more faults. */
  calmDown(): void
  /** Ends all in order. */
  close(): Promise<void>
  /** Stops all without a word. */
  abandon(): void
}
