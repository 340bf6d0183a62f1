import type { Part } from '../../../machines/protocol/parts.ts'
import { stateText } from '../../../machines/protocol/states.ts'
import type { TaskEvent } from '../../../runtime/store/store.ts'

/** The longest text of parts in one line, in characters. */
const LONGEST = 300

/** The beginning of the texts of parts, in one line; `…` stands for every other part. */
export function partsText(parts: readonly Part[] = []): string {
  return parts
    .map(part => ('text' in part ? part.text : '…'))
    .join(' ')
    .slice(0, LONGEST)
    .trim()
}

/** The text in a status; empty for an artifact. */
export function statusText({ update }: TaskEvent): string {
  return 'statusUpdate' in update ? partsText(update.statusUpdate.status.message?.parts) : ''
}

/** An event for people: `input-required: Small or large?`, `artifact coffee.txt`, `more of artifact coffee.txt`. */
export function eventWords(event: TaskEvent): string {
  const { update } = event
  if ('statusUpdate' in update)
    return [stateText(update.statusUpdate.status.state), statusText(event)].filter(text => text !== '').join(': ')
  const {
    artifact: { name, artifactId },
    append
  } = update.artifactUpdate
  return `${append ? 'more of ' : ''}artifact ${name || artifactId}`
}
