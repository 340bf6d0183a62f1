import type { FilePart, TextPart } from 'ai'
import type { Part } from '../../../machines/protocol/parts.ts'
import { merged } from '../parts.ts'

/** What models can look at as it is. */
const SEEN = /^(?:image\/.+|application\/pdf)$/i

/** Parts of a client's message as a model is told them: pictures and PDF as files, data as JSON text, other files by their names. */
export function filesAndText(parts: readonly Part[]): (TextPart | FilePart)[] {
  return parts.map(part => fileOf(part) ?? { type: 'text', text: textIn(part) })
}

/** The text in parts of the agent's; data as JSON, and of files what they are called. */
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
