import type { FilePart, TextPart } from 'ai'
import type { Part } from '../../../machines/protocol/parts.ts'

/** The media types that models accept as files. */
const SEEN = /^(?:image\/.+|application\/pdf)$/i

/** Parts of a client's message for a prompt: images and PDFs as files, data as JSON text, other files by name. */
export function filesAndText(parts: readonly Part[]): (TextPart | FilePart)[] {
  return parts.map(part => fileOf(part) ?? { type: 'text', text: textIn(part) })
}

/** The text of an agent's parts; data as JSON, files by name. */
export function onlyText(parts: readonly Part[]): string {
  return merged(parts).map(textIn).join('\n')
}

function fileOf(part: Part): FilePart | undefined {
  const { mediaType, filename } = part
  if (mediaType === undefined || !SEEN.test(mediaType)) return undefined
  const data = 'raw' in part ? part.raw : 'url' in part ? webAddress(part.url) : undefined
  return data === undefined ? undefined : { type: 'file', data, mediaType, ...(filename !== undefined && { filename }) }
}

function webAddress(url: string): URL | undefined {
  return /^https?:/i.test(url) && URL.canParse(url) ? new URL(url) : undefined
}

function textIn(part: Part): string {
  if ('text' in part) return part.text
  if ('data' in part) return JSON.stringify(part.data)
  const { filename = 'without a name', mediaType = 'of an unknown type' } = part
  return `[a file ${filename}, ${mediaType}${'url' in part ? `, at ${part.url}` : ''}]`
}

/** Joins adjacent text parts, as a client does with the chunks of an artifact. */
export function merged(parts: readonly Part[]): Part[] {
  const whole: Part[] = []
  for (const part of parts) addTo(whole, part)
  return whole
}

/** Appends a part. Text after text joins it. */
export function addTo(parts: Part[], part: Part): void {
  const last = parts.at(-1)
  if (last && isText(last) && isText(part)) parts[parts.length - 1] = { text: last.text + part.text }
  else parts.push(part)
}

/** Whether a part has text and no other member. */
export function isText(part: Part): part is { text: string } {
  return 'text' in part && Object.keys(part).length === 1
}
