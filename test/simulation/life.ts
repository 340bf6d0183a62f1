import type { ClientSocket } from '../../adapters/client/transports/websocket/client-socket.ts'
import { methodsOf } from '../../adapters/json-rpc/dispatch.ts'
import { Connection } from '../../adapters/websocket/connection.ts'
import { PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import { accepted, createRuntime, defineAgent, rejected, reply, textOf, type Runtime } from '../../runtime/index.ts'
import type { Ids } from '../../runtime/ports/ids.ts'
import type { WorldConfig } from './config.ts'
import type { Disk } from './disk.ts'
import type { Journal } from './journal.ts'
import type { Outside } from './outside.ts'
import type { Violations } from './violations.ts'
import type { ClockView, VirtualClock } from './virtual-clock.ts'
import type { Wire } from './wire.ts'
import { worksIn } from './works.ts'

/** What a process runs in. */
export interface LifeServices {
  readonly config: WorldConfig
  readonly clock: VirtualClock
  readonly disk: Disk
  readonly outside: Outside
  readonly journal: Journal
  readonly violations: Violations
  readonly ids: Ids
}

/** What the runtime may say of trouble that the world makes. All else is a fault. */
const EXPECTED: readonly string[] = [
  'a commit failed', 'a context could not be loaded', 'a context could not be loaded again', 'the wakes that are due could not be read',
  'the work of a task failed', 'a word was dropped because its work had ended', 'an operation failed', 'old data could not be deleted', 'progress was dropped because the task waits for an answer'
]

/** One process: a runtime and its server, until it is killed or closed. */
export class Life {
  readonly runtime: Runtime
  readonly #clock: ClockView
  /** The time of what is not the runtime's own: its disk, and what its works wait for outside. */
  readonly #around: ClockView
  readonly #services: LifeServices
  readonly #wires = new Set<Wire>()
  #isOver = false
  #isClosing = false

  constructor(services: LifeServices) {
    const { config, disk, outside, journal, violations, ids } = services
    this.#services = services
    this.#clock = services.clock.view()
    this.#around = services.clock.view()
    const works = worksIn(outside.reach(this.#around, () => this.#isOver))
    const noted = (level: string) => (message: string, details: Record<string, unknown>) => {
      if (this.#isOver) return
      const { error } = details
      journal.note(`${level}: ${message}: ${error instanceof Error ? error.message : ''}`)
      if (!EXPECTED.includes(message)) violations.add(`the runtime says: ${message} ${error instanceof Error ? error.stack : JSON.stringify(details)}`)
    }
    this.runtime = createRuntime({
      agent: defineAgent({
        card: { name: 'Simulated' },
        work: works[config.work],
        messages: config.messages,
        ...(config.negotiates && { negotiate: async ({ message }) => negotiated(textOf(message)) })
      }),
      store: disk.open(this.#around),
      clock: this.#clock,
      ids,
      logger: { warn: noted('warn'), error: noted('error') },
      limits: {
        recoveries: 10_000, idleContexts: config.idleContexts, liveContexts: config.liveContexts, principalShare: 1, bufferedEvents: config.bufferedEvents
      }
    })
  }

  get isOver(): boolean {
    return this.#isOver
  }

  get isClosing(): boolean {
    return this.#isClosing
  }

  /** Takes a connection, whose handshake said who calls. */
  accept(wire: Wire, principal: string): ClientSocket {
    const { runtime } = this
    this.#wires.add(wire)
    wire.server.on('close', () => this.#wires.delete(wire))
    const serving = { runtime, methods: methodsOf(runtime), interfaces: [] }
    const connection = new Connection(serving, wire.server, wire.stream, { principal: { id: principal }, version: PROTOCOL_VERSION, extensions: '' })
    void connection
    return wire.client
  }

  /** Kills the process, at once. */
  kill(): void {
    if (this.#isOver) return
    this.#services.journal.note('killed')
    this.#isOver = true
    this.#clock.stop()
    this.#around.stop()
    for (const wire of this.#wires) wire.serverDies()
  }

  /** Ends the process in order. */
  async close(): Promise<void> {
    if (this.#isOver || this.#isClosing) return
    this.#isClosing = true
    this.#services.journal.note('closes')
    for (const wire of this.#wires) wire.serverLeaves()
    await this.runtime.close()
    if (this.#clock.size > 0) this.#services.violations.add(`I13: ${this.#clock.size} timers are left of a runtime that is closed`)
    this.kill()
  }
}

function negotiated(said: string) {
  if (said === 'hello') return reply('hello yourself')
  return said === 'no' ? rejected('not that') : accepted()
}
