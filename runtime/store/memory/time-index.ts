/** Maximum entries of one chunk. */
const CHUNK = 512

/** Position in a {@link TimeIndex}. An empty id is before all others of the same time. */
export interface TimePlace {
  readonly atMs: number
  readonly id: string
}

/**
 * Index of entries by time, then by id. It consists of short sorted chunks, so that an insertion or deletion moves few entries. The
 * time and id of an entry must not change while it is in the index.
 */
export class TimeIndex<Entry> {
  readonly #chunks: Entry[][] = []
  readonly #timeOf: (entry: Entry) => number
  readonly #idOf: (entry: Entry) => string

  constructor(timeOf: (entry: Entry) => number, idOf: (entry: Entry) => string) {
    this.#timeOf = timeOf
    this.#idOf = idOf
  }

  add(entry: Entry): void {
    const at = this.#placeOf(entry)
    const index = Math.min(this.#chunkOf(at), this.#chunks.length - 1)
    const chunk = this.#chunks[index]
    if (!chunk) {
      this.#chunks.push([entry])
      return
    }
    chunk.splice(this.#slotIn(chunk, at), 0, entry)
    if (chunk.length > CHUNK) this.#chunks.splice(index + 1, 0, chunk.splice(CHUNK / 2))
  }

  /** Deletes the entry at a position, if there is one. */
  delete(at: TimePlace): void {
    const index = this.#chunkOf(at)
    const chunk = this.#chunks[index] ?? []
    const slot = this.#slotIn(chunk, at)
    const found = chunk[slot]
    if (!found || this.#compare(found, at) !== 0) return
    chunk.splice(slot, 1)
    if (chunk.length === 0) this.#chunks.splice(index, 1)
  }

  /** The first entries after a position, at most `limit`. */
  read(limit: number, after: TimePlace): Entry[] {
    const entries: Entry[] = []
    for (let index = this.#chunkOf(after); entries.length < limit; index += 1) {
      const chunk = this.#chunks[index]
      if (!chunk) break
      entries.push(...chunk.filter(entry => this.#compare(entry, after) > 0).slice(0, limit - entries.length))
    }
    return entries
  }

  /** The first entries before a time, at most `limit`. */
  readBefore(limit: number, beforeMs: number): Entry[] {
    const entries = this.read(limit, { atMs: -Infinity, id: '' })
    return entries.slice(0, this.#slotIn(entries, { atMs: beforeMs, id: '' }))
  }

  /** Index of the first chunk whose last entry is not before this position. */
  #chunkOf(at: TimePlace): number {
    let from = 0
    for (let to = this.#chunks.length; from < to;) {
      const middle = (from + to) >> 1
      if (this.#compare(this.#chunks[middle]?.at(-1) as Entry, at) >= 0) to = middle
      else from = middle + 1
    }
    return from
  }

  #slotIn(chunk: readonly Entry[], at: TimePlace): number {
    let from = 0
    for (let to = chunk.length; from < to;) {
      const middle = (from + to) >> 1
      if (this.#compare(chunk[middle] as Entry, at) >= 0) to = middle
      else from = middle + 1
    }
    return from
  }

  #placeOf(entry: Entry): TimePlace {
    return { atMs: this.#timeOf(entry), id: this.#idOf(entry) }
  }

  #compare(entry: Entry, at: TimePlace): number {
    const atMs = this.#timeOf(entry)
    if (atMs !== at.atMs) return atMs - at.atMs
    const id = this.#idOf(entry)
    if (id === at.id) return 0
    return id < at.id ? -1 : 1
  }
}
