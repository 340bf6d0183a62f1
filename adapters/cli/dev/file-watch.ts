import { existsSync, watch, type FSWatcher } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Clock } from '../../../runtime/ports/clock.ts'

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

  /** Replaces the set of watched files. `isAny` also reports new files and folders beside them, such as an import that was missing. */
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
