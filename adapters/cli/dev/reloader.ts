import { execFile } from 'node:child_process'
import { existsSync, type FSWatcher, watch } from 'node:fs'
import { createRequire, register } from 'node:module'
import { dirname, isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { Clock } from '../../../runtime/ports/clock.ts'
import { onReceived } from '../../../runtime/primitives/event-loop.ts'
import { CommandError } from '../command.ts'
import { type AgentModule, loadAgent, type ModuleReader, nodeReader } from '../load-agent.ts'
import { type HookData, LOAD, type Loaded } from './fresh-module-hooks.ts'

/** Receives the result of each reload. Neither method rejects. */
interface ReloadListener {
  loaded(module: AgentModule): Promise<void>
  /** The module does not load. The previous agent is kept. */
  failed(error: unknown): void
}

/** A module that is not loaded after this time is reported. */
export const SLOW_LOAD_MS = 5000

/**
 * Loads an agent's module, and again whenever it or an import is saved. A load that is in progress then is abandoned,
 * since it may never end. Loaded modules are reported one at a time.
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
  /** The load in progress. With `#isStale` another one follows. */
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

/**
 * The place of the first syntax error in these JavaScript files, with its source line. Older Nodes do not report it.
 * Empty without one.
 */
export async function syntaxPlace(files: Iterable<string>): Promise<string> {
  for (const file of files) {
    if (!/\.[cm]?js$/.test(file)) continue
    const errors = await new Promise<string>(resolve => {
      execFile(process.execPath, ['--check', file], { env: {} }, (_, __, stderr) => resolve(stderr))
    })
    if (errors !== '') return errors.split('\n').slice(0, 3).join('\n')
  }
  return ''
}

/** Numbers the loads. Node cannot unload modules, so every load uses new URLs. */
let loads = 0

/** The port of the hooks, which are registered once for the process. */
let hooksPort: MessagePort | undefined

/** The decision about an imported file, for each load that is not over. */
const imported = new Map<string, (file: string) => void>()

/** Whether tsx is registered in this process. */
let hasTsx = false

const { cache } = createRequire(import.meta.url)

/**
 * Loads modules and their imports again on every call, except packages. Records the files of the last load, even of one
 * that failed or never ends, so that they can be watched.
 */
export class FreshModules {
  readonly #found: (file: string) => void
  readonly #inner: ModuleReader
  #files: ReadonlySet<string> = new Set()

  /** `found` receives each imported file during the load. */
  constructor(found: (file: string) => void = () => {}, inner: ModuleReader = nodeReader) {
    this.#found = found
    this.#inner = inner
  }

  /** The paths of the last module and of its imports. */
  get files(): ReadonlySet<string> {
    return this.#files
  }

  /** A module reader for `loadAgent`. */
  get reader(): ModuleReader {
    const load = (href: string) => this.#load(href)
    const loadTsx = async () => {
      const { register } = await this.#inner.loadTsx()
      if (!hasTsx) {
        hasTsx = true
        register()
        // Registered after the hooks of tsx, so that these see the specifiers that tsx has resolved.
        hooksPort?.close()
        hooksPort = hooked()
      }
      return { register, tsImport: load }
    }
    return { ...this.#inner, load, loadTsx }
  }

  async #load(href: string): Promise<unknown> {
    const port = (hooksPort ??= hooked())
    const files = new Set([fileURLToPath(href)])
    this.#files = files
    const add = (file: string) => {
      files.add(file)
      if (this.#files === files) this.#found(file)
    }
    // CommonJS modules are cached by path, without the query.
    for (const path of ownRequired()) delete cache[path]
    loads += 1
    const load = String(loads)
    imported.set(load, add)
    try {
      return await import(`${href}?${LOAD}=${load}`)
    } finally {
      let more: boolean
      /* c8 ignore next 2 -- on a busy machine all messages may have come before */
      do more = addFile(receiveMessageOnPort(port)?.message)
      while (more)
      imported.delete(load)
      // Some Nodes name the load in the path, too.
      for (const path of ownRequired()) files.add(path.replace(/\?.*$/, ''))
    }
  }
}

/** The paths of cached CommonJS modules, except packages. */
function ownRequired(): string[] {
  return Object.keys(cache).filter(path => isAbsolute(path) && !path.includes('/node_modules/'))
}

function hooked(): MessagePort {
  const { port1, port2: port } = new MessageChannel()
  const kept = [new URL('../../../', import.meta.url).href, new URL('../', import.meta.resolve('taskchart')).href]
  // Node 26 deprecates register; registerHooks, which it names instead, is missing in Node 20.
  const { noDeprecation = false } = process
  process.noDeprecation = true
  register<HookData>(new URL('./fresh-module-hooks.js', import.meta.url), {
    data: { port, kept },
    transferList: [port]
  })
  process.noDeprecation = noDeprecation
  onReceived(port1, 'message', addFile, console.error)
  port1.unref()
  return port1
}

/** Adds a file to its load. Returns whether there was a file. */
function addFile(loaded: Loaded | undefined): boolean {
  if (loaded) imported.get(loaded.load)?.(fileURLToPath(loaded.file))
  return loaded !== undefined
}

/** Debounce after a change: editors write a file in several steps. */
export const SETTLE_MS = 50

/** Reports changes of files. Watches their folders, since editors replace files. Does not keep the process alive. */
export class FileWatch {
  readonly #clock: Clock
  readonly #changed: () => void
  readonly #folders = new Map<string, FSWatcher>()
  #files = new Set<string>()
  #isAny = false
  #timer: unknown

  constructor(clock: Clock, changed: () => void) {
    this.#clock = clock
    this.#changed = changed
  }

  /**
   * Replaces the set of watched files. `isAny` also reports new files and folders beside them, such as an import that
   * was missing.
   */
  watch(files: ReadonlySet<string>, isAny: boolean): void {
    this.#files = new Set(files)
    this.#isAny = isAny
    const wanted = new Set([...files].map(file => dirname(file)))
    for (const [folder, watcher] of this.#folders) {
      if (wanted.has(folder)) continue
      watcher.close()
      this.#folders.delete(folder)
    }
    for (const folder of wanted) this.#watchFolder(folder)
  }

  /** Watches one more file. */
  add(file: string): void {
    this.#files.add(file)
    this.#watchFolder(dirname(file))
  }

  /** Reports nothing more. May be called twice. */
  close(): void {
    this.#clock.clearTimeout(this.#timer)
    for (const watcher of this.#folders.values()) watcher.close()
    this.#folders.clear()
  }

  #watchFolder(folder: string): void {
    if (this.#folders.has(folder) || !existsSync(folder)) return
    const watcher = watch(folder, { persistent: false }, (event, name) => {
      // Other files that only grow may be logs, even of this.
      if (name === null || this.#files.has(join(folder, name)) || (this.#isAny && event === 'rename')) this.#settle()
    })
    // The folder is gone, so the next load reports which file is missing.
    watcher.on('error', () => this.#settle())
    this.#folders.set(folder, watcher)
  }

  #settle(): void {
    this.#clock.clearTimeout(this.#timer)
    this.#timer = this.#clock.setTimeout(this.#changed, SETTLE_MS)
  }
}
