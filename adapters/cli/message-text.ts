import type { Message } from '../../machines/protocol/parts.ts'
import { messageParts } from './artifact-parts.ts'
import { shortly } from './results.ts'
import { plain } from './terminal-text.ts'

/** What an agent says about its task, as text: files among it are only named. */
export function messageText(message: Message): string {
  return messageParts(message).map(given => ('text' in given ? plain(given.text) : shortly(given))).join(' ')
}
