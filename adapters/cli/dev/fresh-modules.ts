import { createRequire, register } from 'node:module'
import { isAbsolute } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MessageChannel, receiveMessageOnPort, type MessagePort } from 'node:worker_threads'
import { onReceived } from '../../../runtime/primitives/received.ts'
import { nodeReader, type ModuleReader } from '../load-agent.ts'
import { LOAD, type HookData, type Loaded } from './fresh-module-hooks.ts'

/** Numbers the loads. Node cannot unload modules, so every load uses new URLs. */
let loads = 0

/** The port of the hooks, which are registered once for the process. */
let told: MessagePort | undefined

/** The decision about an imported file, for each load that is not over. */
const imported = new Map<string, (file: string) => void>()

/** Whether tsx is registered in this process. */
let hasTsx = false

const { cache } = createRequire(import.meta.url)

/**
 * Loads modules and their imports again on every call, except packages. Records the files of the last load, even of one that failed
 * or never ends, so that they can be watched.
 */
export class FreshModules {
  readonly #found: (file: string) => void
  readonly #inner: ModuleReader
  #files: ReadonlySet<string> = new Set()

  /** `found` hears of each imported file while the load goes on. */
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
        told?.close()
        told = hooked()
      }
      return { register, tsImport: load }
    }
    return { ...this.#inner, load, loadTsx }
  }

  async #load(href: string): Promise<unknown> {
    const port = (told ??= hooked())
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
      do more = hear(receiveMessageOnPort(port)?.message)
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
  onReceived(port1, 'message', hear, console.error)
  port1.unref()
  return port1
}

/** Tells the load that a file belongs to it. Returns whether there was a file. */
function hear(loaded: Loaded | undefined): boolean {
  if (loaded) imported.get(loaded.load)?.(fileURLToPath(loaded.file))
  return loaded !== undefined
}
