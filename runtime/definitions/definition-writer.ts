import type { Agent } from '../agent/define-agent.ts'
import { type Clock, unrefTimer } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import type { Store } from '../store/store.ts'
import { type LocalModules, outlineForVersion, outlineText } from './agent-outline.ts'
import { textDigest } from './code-text.ts'

/** The pause after a definition could not be stored, in milliseconds. */
const PAUSE_MS = 60_000

/** The maximum size of a definition, in characters. */
const MOST_CHARACTERS = 4 * 1024 * 1024

interface Services {
  readonly agent: Agent
  readonly store: Pick<Store, 'writeDefinition'>
  readonly clock: Clock
  readonly logger: Logger
  /** Gives the local modules of the agent; `undefined` if its file is not known. */
  readonly modules: (() => LocalModules) | undefined
}

/** Stores the definitions of an agent: of each version, once, when the first task of that is stored. */
export class DefinitionWriter {
  readonly #services: Services
  readonly #writing = new Set<Promise<void>>()
  readonly #timers = new Set<unknown>()
  #isClosed = false

  constructor(services: Services) {
    this.#services = services
  }

  /**
   * Begins to store the definition of a version, and gives its digest; `undefined` if none can be stored. A write that
   * fails is repeated.
   */
  store(version: string): string | undefined {
    const text = this.#definitionOf(version)
    if (text === undefined) return undefined
    const digest = textDigest(text)
    this.#write(digest, text)
    return digest
  }

  /** Resolves when no definition is being stored any more. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const timer of this.#timers) this.#services.clock.clearTimeout(timer)
    await Promise.all(this.#writing)
  }

  /** The definition of a version as text; `undefined` if it cannot be stored. */
  #definitionOf(version: string): string | undefined {
    const { agent, store, modules, logger } = this.#services
    if (!store.writeDefinition) return undefined
    try {
      const text = outlineText(outlineForVersion(agent, version, modules?.()))
      if (text.length <= MOST_CHARACTERS) return text
      logger.warn('the definition of this agent is too large to be stored, so no comparison can read it', {
        characters: text.length,
        most: MOST_CHARACTERS
      })
    } catch (error) {
      // A text that cannot be read ends no task.
      logger.warn('the definition of this agent cannot be read, so it is not stored', { error })
    }
    return undefined
  }

  #write(digest: string, text: string): void {
    const { store, clock, logger } = this.#services
    const write = async () => store.writeDefinition?.(digest, text, clock.now())
    const writing = write()
      .catch((error: unknown) => {
        logger.warn('the definition of this agent could not be stored', { error })
        if (!this.#isClosed) this.#timers.add(unrefTimer(clock.setTimeout(() => this.#write(digest, text), PAUSE_MS)))
      })
      .finally(() => this.#writing.delete(writing))
    this.#writing.add(writing)
  }
}
