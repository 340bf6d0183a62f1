import type { Wake, WakeCursor } from './store.ts'

/** How many wakes stand in one chunk at the most. */
const CHUNK = 512

/**
 * Wakes in the order of their times, those of one moment by task. They stand in short sorted chunks, so that putting one
 * in or out moves few of the others, however many wait.
 */
export class WakeIndex {
  readonly #chunks: Wake[][] = []

  add(wake: Wake): void {
    const index = Math.min(this.#chunkOf(wake), this.#chunks.length - 1)
    const chunk = this.#chunks[index]
    if (!chunk) {
      this.#chunks.push([wake])
      return
    }
    chunk.splice(placeIn(chunk, wake), 0, wake)
    if (chunk.length > CHUNK) this.#chunks.splice(index + 1, 0, chunk.splice(CHUNK / 2))
  }

  delete(wake: WakeCursor): void {
    const index = this.#chunkOf(wake)
    const chunk = this.#chunks[index] ?? []
    const place = placeIn(chunk, wake)
    const found = chunk[place]
    if (!found || compare(found, wake) !== 0) return
    chunk.splice(place, 1)
    if (chunk.length === 0) this.#chunks.splice(index, 1)
  }

  /** The first wakes after one, at most `limit`. */
  read(limit: number, after: WakeCursor): Wake[] {
    const wakes: Wake[] = []
    for (let index = this.#chunkOf(after); wakes.length < limit; index += 1) {
      const chunk = this.#chunks[index]
      if (!chunk) break
      wakes.push(...chunk.filter(wake => compare(wake, after) > 0).slice(0, limit - wakes.length))
    }
    return wakes
  }

  /** The first chunk whose last wake is not before this one. */
  #chunkOf(wake: WakeCursor): number {
    return firstIndex(this.#chunks.length, index => {
      const last = this.#chunks[index]?.at(-1)
      return last !== undefined && compare(last, wake) >= 0
    })
  }
}

function placeIn(chunk: readonly Wake[], wake: WakeCursor): number {
  return firstIndex(chunk.length, index => {
    const other = chunk[index]
    return other !== undefined && compare(other, wake) >= 0
  })
}

/** The first index below `end` from which on something holds, or `end`. */
function firstIndex(end: number, holds: (index: number) => boolean): number {
  let from = 0
  let to = end
  while (from < to) {
    const middle = (from + to) >> 1
    if (holds(middle)) to = middle
    else from = middle + 1
  }
  return from
}

function compare(a: WakeCursor, b: WakeCursor): number {
  if (a.atMs !== b.atMs) return a.atMs - b.atMs
  if (a.taskId === b.taskId) return 0
  return a.taskId < b.taskId ? -1 : 1
}
