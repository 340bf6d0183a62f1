import { isObject } from '../../../machines/protocol/codec/json.ts'
import type { Message } from '../../../machines/protocol/objects.ts'
import { textOf } from '../../../runtime/index.ts'
import type { Redact } from './seen-step.ts'

/** A kept value. */
export interface Kept {
  /** Set when the value changes: it is then kept as if it were new. */
  isChanged: boolean
}

/**
 * The values that were added or changed last, at most so many. A change costs nothing: the order is known when one has
 * to go.
 */
export class Recent<Value extends Kept> {
  readonly #limit: number
  /** The values, the next to be removed first. */
  readonly #values = new Map<string, Value>()
  /**
   * Goes on where it stopped: a new iterator passes the places of all deleted entries, which a Map keeps until it
   * grows.
   */
  readonly #next = this.#values.entries()

  constructor(limit: number) {
    this.#limit = limit
  }

  get size(): number {
    return this.#values.size
  }

  get(name: string): Value | undefined {
    return this.#values.get(name)
  }

  has(name: string): boolean {
    return this.#values.has(name)
  }

  /** All values; of those that have not changed, the first added first. */
  values(): Value[] {
    return [...this.#values.values()]
  }

  /** Adds a value. Returns the value that it displaces, if there are too many. */
  add(name: string, value: Value): Value | undefined {
    this.#values.set(name, value)
    while (this.#values.size > this.#limit) {
      const [oldest, displaced] = this.#next.next().value as [string, Value]
      this.#values.delete(oldest)
      if (!displaced.isChanged) return displaced
      displaced.isChanged = false
      this.#values.set(oldest, displaced)
    }
    return undefined
  }

  delete(name: string): void {
    this.#values.delete(name)
  }
}

/** The maximum length of a title. */
const LONGEST_TITLE = 80

/** The length of the text that a title is made of, so that redaction sees secrets at the cut completely. */
const KEPT_TEXT = 2 * LONGEST_TITLE

/** The start of a message's text. It does not keep the rest in memory, as a slice would. */
export function wordsOf(message: Message): string {
  const [part] = message.parts
  const words = (message.parts.length === 1 && part && 'text' in part ? part.text : textOf(message)).trimStart()
  return words.length <= KEPT_TEXT ? words : Buffer.from(words.slice(0, KEPT_TEXT)).toString()
}

/** Words as a title, without secrets. */
export function shownWords(words: string, redact: Redact): string {
  const shown = redact(words.slice(0, KEPT_TEXT))
  return typeof shown === 'string' ? shown.slice(0, LONGEST_TITLE) : ''
}

/** A title of words and agreed terms, without secrets. */
export function shownTitle(words: string, agreed: unknown, redact: Redact): string {
  return [shownWords(words, redact), shownTerms(agreed, redact)].filter(text => text !== '').join(' · ')
}

function shownTerms(agreed: unknown, redact: Redact): string {
  const shown = isObject(agreed) ? redact(agreed['terms']) : undefined
  if (!isObject(shown)) return ''
  return Object.entries(shown)
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ')
    .slice(0, LONGEST_TITLE)
}
