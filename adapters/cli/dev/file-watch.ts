import { existsSync, watch, type FSWatcher } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Clock } from '../../../runtime/ports/clock.ts'

/** How long after a change it is told: editors write a file in several steps. */
export const SETTLE_MS = 50

/** Tells when files change, by their folders, since editors put new files in the place of old ones. Does not keep the process. */
export class FileWatch {
  readonly #clock: Clock
  readonly #changed: () => void
  readonly #folders = new Map<string, FSWatcher>()
  #files: ReadonlySet<string> = new Set()
  #isAny = false
  #timer: unknown

  constructor(clock: Clock, changed: () => void) {
    this.#clock = clock
    this.#changed = changed
  }

  /** Watches these files in place of those before. `isAny`: and all that are beside them, one of which may be what is missing. */
  watch(files: ReadonlySet<string>, isAny: boolean): void {
    this.#files = files
    this.#isAny = isAny
    const wanted = new Set([...files].map(file => dirname(file)))
    for (const [folder, watcher] of this.#folders) {
      if (wanted.has(folder)) continue
      watcher.close()
      this.#folders.delete(folder)
    }
    for (const folder of wanted) {
      // One that is not there is where something was to be imported from; who makes it saves a file elsewhere too.
      if (!this.#folders.has(folder) && existsSync(folder)) this.#folders.set(folder, this.#watched(folder))
    }
  }

  /** Tells nothing more. May be called twice. */
  close(): void {
    this.#clock.clearTimeout(this.#timer)
    for (const watcher of this.#folders.values()) watcher.close()
    this.#folders.clear()
  }

  #watched(folder: string): FSWatcher {
    const watcher = watch(folder, { persistent: false }, (_, name) => {
      if (name === null || this.#isAny || this.#files.has(join(folder, name))) this.#settle()
    })
    // A folder that is gone: what was in it cannot be loaded, which the next load tells.
    watcher.on('error', () => this.#settle())
    return watcher
  }

  #settle(): void {
    this.#clock.clearTimeout(this.#timer)
    this.#timer = this.#clock.setTimeout(this.#changed, SETTLE_MS)
  }
}
