import { execFile } from 'node:child_process'
import type { Clock } from '../../../runtime/ports/clock.ts'
import { CommandError } from '../command.ts'
import { loadAgent, type AgentModule } from '../load-agent.ts'
import { FileWatch } from './file-watch.ts'
import { FreshModules } from './fresh-modules.ts'

/** Receives the result of each reload. Neither method rejects. */
export interface ReloadListener {
  loaded(module: AgentModule): Promise<void>
  /** The module does not load. The previous agent stays. */
  failed(error: unknown): void
}

/** A module that is not loaded after this time is reported. */
export const SLOW_LOAD_MS = 5000

/**
 * Loads an agent's module, and again whenever it or an import is saved. A load that is in progress then is abandoned, since it may
 * never end. Loaded modules are reported one at a time.
 */
export class Reloader {
  readonly #file: string
  readonly #cwd: string
  readonly #clock: Clock
  readonly #modules = new FreshModules(file => {
    if (this.#listener) this.#watch.add(file)
  })
  readonly #watch: FileWatch
  #listener: ReloadListener | undefined
  /** The load in progress. `#isStale` asks for another one after it. */
  #underWay: Promise<void> | undefined
  #isStale = false
  #abandon = () => {}

  constructor(file: string, cwd: string, clock: Clock) {
    this.#file = file
    this.#cwd = cwd
    this.#clock = clock
    this.#watch = new FileWatch(clock, () => this.#reload())
  }

  /** Loads the module. Rejects as `loadAgent` does. */
  async first(): Promise<AgentModule> {
    try {
      return await loadAgent(this.#file, this.#cwd, this.#modules.reader)
    } catch (error) {
      if (!(error instanceof CommandError) || !(error.cause instanceof SyntaxError) || error.details !== '') throw error
      throw new CommandError(error.message, { details: await syntaxPlace(this.#modules.files), cause: error.cause })
    }
  }

  /** Reports every reload from now on. */
  follow(listener: ReloadListener): void {
    this.#listener = listener
    this.#watch.watch(this.#modules.files, false)
  }

  /** Stops reloading. Resolves after the report in progress. */
  async close(): Promise<void> {
    this.#listener = undefined
    this.#watch.close()
    this.#abandon()
    await this.#underWay
  }

  #reload(): void {
    this.#isStale = true
    this.#abandon()
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
    const abandoned = new Promise<undefined>(resolve => (this.#abandon = () => resolve(undefined)))
    const slow = this.#clock.setTimeout(() => listener.failed(new CommandError(slowText(this.#file))), SLOW_LOAD_MS)
    try {
      const module = await Promise.race([this.first(), abandoned]).finally(() => this.#clock.clearTimeout(slow))
      if (!module) return
      this.#watch.watch(this.#modules.files, false)
      await listener.loaded(module)
    } catch (error) {
      this.#watch.watch(new Set([...known, ...this.#modules.files]), true)
      listener.failed(error)
    }
  }
}

function slowText(file: string): string {
  return `${file} is not loaded after ${SLOW_LOAD_MS / 1000} s. Look for an await at the top level of a module that never ends, and save that module again.`
}

/** The place of the first syntax error in these JavaScript files, with its source line. Older Nodes do not report it. Empty without one. */
export async function syntaxPlace(files: Iterable<string>): Promise<string> {
  for (const file of files) {
    if (!/\.[cm]?js$/.test(file)) continue
    const said = await new Promise<string>(resolve => {
      execFile(process.execPath, ['--check', file], { env: {} }, (_, __, stderr) => resolve(stderr))
    })
    if (said !== '') return said.split('\n').slice(0, 3).join('\n')
  }
  return ''
}
