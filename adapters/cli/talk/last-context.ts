import { createHash } from 'node:crypto'
import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import type { Environment } from '../command.ts'
import { makeFolder } from '../files.ts'

/** Where a chat stopped: its context, and its task if that had not ended. */
export interface LastContext {
  readonly contextId: string
  readonly taskId?: string | undefined
}

/** How many URLs are remembered: the ones used last. */
const MOST_URLS = 100

/**
 * The folder of last contexts: `taskchart/chats` below `XDG_STATE_HOME`, by default `~/.local/state`. `undefined`
 * without a home.
 */
export function contextFolder({ XDG_STATE_HOME: state = '', HOME, USERPROFILE = '' }: Environment): string | undefined {
  const home = HOME ?? USERPROFILE
  if (isAbsolute(state)) return join(state, 'taskchart', 'chats')
  return isAbsolute(home) ? join(home, '.local', 'state', 'taskchart', 'chats') : undefined
}

/**
 * Remembers the last context of a URL in a file that only its owner can read. Each URL has its own, so that two chats
 * at a time do not disturb each other. Its name is a digest, because a URL may contain a secret.
 */
export class ContextMemory {
  readonly #folder: string | undefined
  readonly #name: string
  #last: string | undefined

  constructor(folder: string | undefined, url: string) {
    this.#folder = folder
    this.#name = `${createHash('sha256').update(url).digest('hex')}.json`
  }

  /** The last context of the URL. A file that is missing or damaged remembers none. */
  async read(): Promise<LastContext | undefined> {
    const text =
      this.#folder === undefined ? '' : await readFile(join(this.#folder, this.#name), 'utf8').catch(() => '')
    return lastContextIn(text)
  }

  /** Remembers a context. Rejects if the file cannot be written. */
  async write({ contextId, taskId }: LastContext): Promise<void> {
    const text = JSON.stringify({ contextId, taskId })
    if (this.#folder === undefined || text === this.#last) return
    const isFirst = this.#last === undefined
    this.#last = text
    await makeFolder(this.#folder, 0o700)
    // Renamed into place, so that a reader never gets half a file.
    const draft = join(this.#folder, `${this.#name}.${process.pid}`)
    await writeFile(draft, `${text}\n`, { mode: 0o600 })
    await rename(draft, join(this.#folder, this.#name))
    if (isFirst) await removeOldest(this.#folder, MOST_URLS)
  }
}

/** Removes the files of a folder that were written first, down to a number of files. */
async function removeOldest(folder: string, most: number): Promise<void> {
  const names = await readdir(folder)
  if (names.length <= most) return
  // Another chat may remove a file meanwhile.
  const files = await Promise.all(
    names.map(name =>
      stat(join(folder, name)).then(
        ({ mtimeMs }) => ({ name, mtimeMs }),
        () => ({ name, mtimeMs: 0 })
      )
    )
  )
  const oldest = files.toSorted((one, other) => other.mtimeMs - one.mtimeMs).slice(most)
  for (const { name } of oldest) await rm(join(folder, name), { force: true })
}

function lastContextIn(text: string): LastContext | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isLastContext(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isLastContext(value: unknown): value is LastContext {
  return (
    isObject(value) &&
    typeof value['contextId'] === 'string' &&
    (value['taskId'] === undefined || typeof value['taskId'] === 'string')
  )
}
