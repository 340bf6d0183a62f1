import { isObject } from '../../../machines/protocol/codec/json.ts'
import type { Message } from '../../../machines/protocol/parts.ts'
import { textOf } from '../../../runtime/authoring/words.ts'
import type { Redact } from './seen-step.ts'

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
