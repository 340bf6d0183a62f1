import type { Part } from '../../../machines/protocol/parts.ts'
import { addTo, isText } from '../parts.ts'

/** How many chunks of one answer may be as short as the one before. The next have twice the length at least, so that no answer has too many. */
const CHUNKS_OF_A_LENGTH = 256

/** What one call said of the answer, as its step keeps it. */
export interface SaidOfAnswer {
  readonly parts: readonly Part[]
  readonly chunks: number
}

/** Where in an answer a call stands. */
export interface PlaceInAnswer {
  /** What stands between the text before and that of this call. */
  readonly lead: string
  /** How many chunks the answer has by now. */
  readonly chunksBefore: number
  /** Says a chunk. `isLast`: the answer ends with it. */
  readonly say: (parts: Part[], isLast: boolean) => void
  readonly signal: AbortSignal
}

/**
 * What a model says in one call, on its way into chunks: all that comes within a turn of the event loop is one. The newest
 * part is held back until the next one comes, so that the last chunk can be told apart.
 */
export class AnswerStream {
  readonly #place: PlaceInAnswer
  readonly #parts: Part[] = []
  #chunks = 0
  #ready: Part[] = []
  #held: Part | undefined
  #flush: NodeJS.Immediate | undefined

  constructor(place: PlaceInAnswer) {
    this.#place = place
  }

  get said(): SaidOfAnswer {
    return { parts: this.#parts, chunks: this.#chunks }
  }

  add(given: Part): void {
    const part = this.#parts.length === 0 && isText(given) ? { text: this.#place.lead + given.text } : given
    addTo(this.#parts, part)
    if (this.#held) addTo(this.#ready, this.#held)
    this.#held = part
    this.#flush ??= setImmediate(() => this.#sayReady())
  }

  /** Says what is left. */
  end(isLast: boolean): void {
    if (this.#held) addTo(this.#ready, this.#held)
    this.#say(isLast)
  }

  /** Says nothing more. */
  stop(): void {
    clearImmediate(this.#flush)
  }

  #sayReady(): void {
    this.#flush = undefined
    const shortest = 2 ** Math.floor((this.#place.chunksBefore + this.#chunks) / CHUNKS_OF_A_LENGTH)
    if (!this.#place.signal.aborted && lengthOf(this.#ready) >= shortest) this.#say(false)
  }

  #say(isLast: boolean): void {
    this.#chunks += 1
    this.#place.say(this.#ready, isLast)
    this.#ready = []
  }
}

/** In characters; of a file there is always enough. */
function lengthOf(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + (isText(part) ? part.text.length : Infinity), 0)
}
