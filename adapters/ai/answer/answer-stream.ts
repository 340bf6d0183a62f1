import type { Part } from '../../../machines/protocol/parts.ts'
import { addTo, isText } from '../model/model-parts.ts'

/** After this many chunks of an answer the minimum length of a chunk doubles, so that a long answer has not too many. */
const CHUNKS_OF_A_LENGTH = 256

/** The output of one call, as its step stores it. */
export interface SaidOfAnswer {
  readonly parts: readonly Part[]
  readonly chunks: number
}

/** The position of a call in an answer. */
export interface PlaceInAnswer {
  /** The separator before the text of this call. */
  readonly lead: string
  /** The number of chunks of the answer so far. */
  readonly chunksBefore: number
  /** Emits a chunk. `isLast`: it ends the answer. */
  readonly say: (parts: Part[], isLast: boolean) => void
  readonly signal: AbortSignal
}

/**
 * Splits the output of one call into chunks: all that comes within one turn of the event loop is one chunk. The newest part is held back
 * until the next one comes, so that the last chunk can be marked.
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

  /** Emits the rest. */
  end(isLast: boolean): void {
    if (this.#held) addTo(this.#ready, this.#held)
    this.#say(isLast)
  }

  /** Emits nothing more. */
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

/** The length in characters. A file counts as long enough for a chunk. */
function lengthOf(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + (isText(part) ? part.text.length : Infinity), 0)
}
