import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import { defineAgent, type Agent } from '../../runtime/agent.ts'
import type { Logger } from '../../runtime/logger.ts'
import { memoryStore } from '../../runtime/memory-store.ts'
import { messageOf } from '../../runtime/outcomes.ts'
import { createRuntime, type Runtime } from '../../runtime/runtime.ts'
import type { Store } from '../../runtime/store.ts'
import type { WorkInput } from '../../runtime/work-input.ts'
import type { ArtifactWords, Words } from '../../runtime/words.ts'
import type { Opening } from './cases.ts'
import { VirtualClock } from './virtual-clock.ts'

/** How the process ends and begins again between two steps of a path. */
export type Interlude = 'none' | 'restarted' | 'killed'

/** The context in which a path is walked. */
export const CONTEXT = 'context-1'

/**
 * An agent's runtime on a clock that stands still, which may end and begin again over the same store. Ids count, so that they
 * are the same in every world with the same past.
 */
export class World {
  readonly clock: VirtualClock
  readonly #agent: Agent
  readonly #store: Store
  readonly #ids: () => string
  #isDead = false
  #runtime: Runtime

  private constructor(agent: Agent, { store, clock, ids }: Past) {
    // Time stands still, so that nothing is waited for that cleans up; and work that crashes shows it.
    this.#agent = { ...agent, cancelGraceMs: 0, restart: { ...agent.restart, type: 'temporary' } }
    this.#store = store
    this.clock = clock
    this.#ids = ids
    this.#runtime = this.#begin()
  }

  /** A world in whose context there is what is to be there before the task. */
  static async open(agent: Agent, { earlier }: Opening, store: Store = memoryStore()): Promise<World> {
    return new World(agent, await past(agent, earlier, store))
  }

  get runtime(): Runtime {
    return this.#runtime
  }

  /** Ends the process, in order or without a word. */
  async end(interlude: Exclude<Interlude, 'none'>): Promise<void> {
    this.#isDead = interlude === 'killed'
    await ended(this.#runtime, this.clock)
    this.#isDead = false
  }

  /** Begins the next process. */
  async begin(): Promise<void> {
    this.#runtime = this.#begin()
    await turns(REST)
  }

  async close(): Promise<void> {
    await ended(this.#runtime, this.clock)
    await this.#store.close()
  }

  #begin(): Runtime {
    const lasting = this.#store
    const store: Store = { ...lasting, commit: given => (this.#isDead ? new Promise(() => {}) : lasting.commit(given)), close: async () => {} }
    return createRuntime({ agent: this.#agent, clock: this.clock, ids: this.#ids, logger: SILENT, store })
  }
}

/** What a test finds out is not in the log. */
const SILENT: Logger = { warn: hush, error: hush }

function hush(): void {}

/** Turns of the event loop in which everything runs that can run without time. */
const REST = 5

/** Lets everything run that can, for so many turns of the event loop. */
export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise(resolve => setImmediate(resolve))
}

/** What the work of a task is given in a world with this opening; `undefined` if it opens no task. */
export async function inputFor(agent: Agent, opening: Opening): Promise<WorkInput | undefined> {
  let given: WorkInput | undefined
  const { migrate: _, recovery: __, ...others } = agent
  const spy = defineAgent({
    ...others,
    messages: 'reject',
    work: ({ taskId, contextId, message, input, terms, extensions, referenceTasks, earlierArtifacts }) => {
      given = { taskId, contextId, message, input, ...(terms && { terms }), extensions, referenceTasks, earlierArtifacts }
    }
  })
  const world = await World.open(spy, opening)
  await world.runtime.sendMessage({ message: openingMessage(opening) })
  await world.close()
  return given
}

/** The message that opens the task of a path. */
export function openingMessage({ words }: { readonly words: Words }) {
  return { messageId: 'opening', contextId: CONTEXT, role: 'ROLE_USER' as const, ...messageOf(words) }
}

interface Past {
  readonly store: Store
  readonly clock: VirtualClock
  readonly ids: () => string
}

/** A store with a task that has completed for each artifact. */
async function past({ card }: Agent, earlier: readonly ArtifactWords[], store: Store): Promise<Past> {
  const clock = new VirtualClock()
  let count = 0
  const ids = () => `id-${(count += 1)}`
  for (const artifact of earlier) {
    const runtime = createRuntime({ agent: defineAgent({ card, cancelGraceMs: 0, work: async () => ({ artifact }) }), clock, ids, store: { ...store, close: async () => {} } })
    await runtime.sendMessage({ message: { ...openingMessage({ words: 'earlier' }), messageId: ids() } }, { extensions: [RELIABILITY_EXTENSION] })
    await ended(runtime, clock)
    clock.increment(1)
  }
  return { store, clock, ids }
}

async function ended(runtime: Runtime, clock: VirtualClock): Promise<void> {
  const closing = runtime.close()
  clock.increment(0)
  await closing
}
