import type { ClientSocket } from '../../adapters/client/transports/websocket/client-socket.ts'
import { methodsOf } from '../../adapters/json-rpc/dispatch.ts'
import { Connection } from '../../adapters/websocket/connection.ts'
import { PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import { accepted, defineAgent, rejected, reply, textOf, type Runtime } from '../../runtime/index.ts'
import { createNode } from '../../runtime/runtime.ts'
import type { Cluster } from '../../runtime/operations/cluster.ts'
import type { Clock } from '../../runtime/ports/clock.ts'
import type { Ids } from '../../runtime/ports/ids.ts'
import type { Store } from '../../runtime/store/store.ts'
import type { WorldConfig } from './config.ts'
import type { Journal } from './journal.ts'
import type { Outside } from './outside.ts'
import type { Violations } from './violations.ts'
import type { ClockView } from './virtual-clock.ts'
import type { Wire } from './wire.ts'
import { worksIn } from './works.ts'
import { servedRuntime } from '../../runtime/runtime-options.ts'

/** The place of a process: its store, and its time. */
export interface Place {
  readonly store: Store
  /** The time of the runtime, which may be made of its own. */
  readonly clock: Clock
  readonly own: ClockView
  /** The time of what is not the runtime's own: its disk, and what its works wait for outside. */
  readonly around: ClockView
  readonly cluster?: Cluster
}

/** What a process runs in. */
export interface LifeServices {
  readonly config: WorldConfig
  readonly outside: Outside
  readonly journal: Journal
  readonly violations: Violations
  readonly ids: Ids
}

/** What the runtime may say of trouble that the world makes. All else is a fault. */
const EXPECTED: readonly string[] = [
  'a commit failed',
  'a context could not be loaded',
  'a context could not be loaded again',
  'the wakes that are due could not be read',
  'the work of a task failed',
  'a word was dropped because its work had ended',
  'an operation failed',
  'old data could not be deleted',
  'progress was dropped because the task waits for an answer',
  'the definition of this agent could not be stored'
]

/** One process: a runtime and its server, until it is killed or closed. */
export class Life {
  readonly runtime: Runtime
  readonly #place: Place
  readonly #services: LifeServices
  readonly #wires = new Set<Wire>()
  #isOver = false
  #isClosing = false

  constructor(services: LifeServices, place: Place) {
    const { config, outside, journal, violations, ids } = services
    const { store, clock, around, cluster } = place
    this.#services = services
    this.#place = place
    const works = worksIn(outside.reach(around, () => this.#isOver))
    const noted = (level: string) => (message: string, details: Record<string, unknown>) => {
      if (this.#isOver) return
      const { error } = details
      journal.note(`${level}: ${message}: ${error instanceof Error ? error.message : ''}`)
      if (!EXPECTED.includes(message))
        violations.add(`the runtime says: ${message} ${error instanceof Error ? error.stack : JSON.stringify(details)}`)
    }
    this.runtime = createNode({
      agent: defineAgent({
        card: { name: 'Simulated' },
        work: works[config.work],
        messages: config.messages,
        ...(config.negotiates && { negotiate: async ({ message }) => negotiated(textOf(message)) })
      }),
      store,
      clock,
      ...(cluster && { cluster }),
      ids,
      logger: { warn: noted('warn'), error: noted('error') },
      limits: {
        liveContexts: config.liveContexts,
        advanced: {
          recoveries: 10_000,
          idleContexts: config.idleContexts,
          principalShare: 1,
          bufferedEvents: config.bufferedEvents
        }
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
    const served = servedRuntime(runtime, 'a test')
    const serving = { runtime: served, methods: methodsOf(served), interfaces: [] }
    const connection = new Connection(serving, wire.server, wire.stream, {
      principal: { id: principal },
      version: PROTOCOL_VERSION,
      extensions: ''
    })
    void connection
    return wire.client
  }

  /** Kills the process, at once. */
  kill(): void {
    if (this.#isOver) return
    this.#services.journal.note('killed')
    this.#isOver = true
    this.#place.own.stop()
    this.#place.around.stop()
    for (const wire of this.#wires) wire.serverDies()
  }

  /** Ends the process in order. */
  async close(): Promise<void> {
    if (this.#isOver || this.#isClosing) return
    this.#isClosing = true
    this.#services.journal.note('closes')
    for (const wire of this.#wires) wire.serverLeaves()
    await this.runtime.close()
    const { size } = this.#place.own
    if (size > 0) this.#services.violations.add(`I13: ${size} timers are left of a runtime that is closed`)
    this.kill()
  }
}

function negotiated(said: string) {
  if (said === 'hello') return reply('hello yourself')
  return said === 'no' ? rejected('not that') : accepted()
}
