import { createRequire, register } from 'node:module'
import { isAbsolute } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MessageChannel, receiveMessageOnPort, type MessagePort } from 'node:worker_threads'
import { nodeReader, type ModuleReader } from '../load-agent.ts'
import { LOAD, type HookData, type Loaded } from './fresh-module-hooks.ts'

/** Node has no way to forget a module, so that what has been loaded stays; each load is another. */
let loads = 0

/** What the hooks tell; they are registered once for the process, and stay. */
let told: MessagePort | undefined

/** Whether tsx reads TypeScript in this process. */
let hasTsx = false

const { cache } = createRequire(import.meta.url)

/**
 * Reads modules anew each time, with all that they import, but for packages. Knows which files the last one led to, also if it
 * failed, so that they can be watched.
 */
export class FreshModules {
  readonly #inner: ModuleReader
  #files: ReadonlySet<string> = new Set()

  constructor(inner: ModuleReader = nodeReader) {
    this.#inner = inner
  }

  /** The paths of the files that the last module led to, and its own. */
  get files(): ReadonlySet<string> {
    return this.#files
  }

  /** Reads them so that `loadAgent` can. */
  get reader(): ModuleReader {
    const load = (href: string) => this.#load(href)
    const loadTsx = async () => {
      const { register } = await this.#inner.loadTsx()
      if (!hasTsx) {
        hasTsx = true
        register()
        // After those of tsx, so that the hooks here see what it makes of a specifier.
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
    // What is CommonJS is kept by its path alone.
    for (const path of ownRequired()) delete cache[path]
    loads += 1
    const load = String(loads)
    try {
      return await import(`${href}?${LOAD}=${load}`)
    } finally {
      for (let heard = receiveMessageOnPort(port); heard; heard = receiveMessageOnPort(port)) {
        const { load: of, file } = heard.message as Loaded
        if (of === load) files.add(fileURLToPath(file))
      }
      for (const path of ownRequired()) files.add(path)
    }
  }
}

/** The paths of modules that are CommonJS, but for packages. */
function ownRequired(): string[] {
  return Object.keys(cache).filter(path => isAbsolute(path) && !path.includes('/node_modules/'))
}

function hooked(): MessagePort {
  const { port1, port2: port } = new MessageChannel()
  const kept = [new URL('../../../', import.meta.url).href, new URL('../', import.meta.resolve('taskchart')).href]
  register<HookData>(new URL('./fresh-module-hooks.js', import.meta.url), { data: { port, kept }, transferList: [port] })
  port1.unref()
  return port1
}
