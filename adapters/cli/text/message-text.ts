import type { Message } from '../../../machines/protocol/parts.ts'
import { messageParts } from '../talk/artifact-parts.ts'
import { shortly } from '../talk/results.ts'
import { plain } from './terminal-text.ts'

/** What an agent says about its task, as text: files among it are only named. Data beside text, for programs, is left out. */
export function messageText(message: Message): string {
  const hasText = message.parts.some(part => 'text' in part)
  const shown = messageParts(message).filter(given => !hasText || !('data' in given))
  return shown.map(given => ('text' in given ? plain(given.text) : shortly(given))).join(' ')
}
