import type { Clock } from '../../../runtime/ports/clock.ts'
import { CommandError } from '../command.ts'
import { loadAgent, type AgentModule } from '../load-agent.ts'
import { FileWatch } from './file-watch.ts'
import { FreshModules } from './fresh-modules.ts'
import { syntaxPlace } from './syntax-place.ts'

/** Who hears of an agent's module that was saved. None of these rejects. */
export interface ReloadListener {
  loaded(module: AgentModule): Promise<void>
  /** It does not load: the one before goes on. */
  failed(error: unknown): void
}

/** Loads an agent's module, and again whenever it or what it imports is saved, one time after the other. */
export class Reloader {
  readonly #file: string
  readonly #cwd: string
  readonly #modules = new FreshModules()
  readonly #watch: FileWatch
  #listener: ReloadListener | undefined
  /** What is being loaded, and whether it has to be loaded again after that. */
  #underWay: Promise<void> | undefined
  #isStale = false

  constructor(file: string, cwd: string, clock: Clock) {
    this.#file = file
    this.#cwd = cwd
    this.#watch = new FileWatch(clock, () => this.#reload())
  }

  /** The module as it is now. Rejects as `loadAgent` does. */
  async first(): Promise<AgentModule> {
    try {
      return await loadAgent(this.#file, this.#cwd, this.#modules.reader)
    } catch (error) {
      if (!(error instanceof CommandError) || !(error.cause instanceof SyntaxError) || error.details !== '') throw error
      throw new CommandError(error.message, { details: await syntaxPlace(this.#modules.files), cause: error.cause })
    }
  }

  /** Tells of each module from now on that is saved. */
  follow(listener: ReloadListener): void {
    this.#listener = listener
    this.#watch.watch(this.#modules.files, false)
  }

  /** Loads nothing more. Resolves when what is being loaded is. */
  async close(): Promise<void> {
    this.#listener = undefined
    this.#watch.close()
    await this.#underWay
  }

  #reload(): void {
    this.#isStale = true
    this.#underWay ??= this.#loadAll().finally(() => (this.#underWay = undefined))
  }

  async #loadAll(): Promise<void> {
    while (this.#isStale && this.#listener) {
      this.#isStale = false
      await this.#load(this.#listener)
    }
  }

  async #load(listener: ReloadListener): Promise<void> {
    const known = this.#modules.files
    try {
      const module = await this.first()
      this.#watch.watch(this.#modules.files, false)
      await listener.loaded(module)
    } catch (error) {
      this.#watch.watch(new Set([...known, ...this.#modules.files]), true)
      listener.failed(error)
    }
  }
}
