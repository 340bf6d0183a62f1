import type { Part } from '../../machines/protocol/parts.ts'

/** Parts with text that follows text in one part, as a client reads the chunks of an artifact. */
export function merged(parts: readonly Part[]): Part[] {
  const whole: Part[] = []
  for (const part of parts) addTo(whole, part)
  return whole
}

/** Adds a part to others: text that follows text becomes one part with it. */
export function addTo(parts: Part[], part: Part): void {
  const last = parts.at(-1)
  if (last && isText(last) && isText(part)) parts[parts.length - 1] = { text: last.text + part.text }
  else parts.push(part)
}

/** Whether a part is text and nothing else. */
export function isText(part: Part): part is { text: string } {
  return 'text' in part && Object.keys(part).length === 1
}
