import type { JsonValue } from '../../../machines/protocol/codec/json.ts'
import type { Artifact } from '../../../machines/protocol/objects.ts'
import type { Message, Part } from '../../../machines/protocol/parts.ts'

/** Something that an agent gave. `name` is what it may be called, its filename or else the name of the whole. */
export type Given = { readonly name: string; readonly filename: string | undefined; readonly mediaType: string | undefined } & (
  | { readonly text: string }
  | { readonly bytes: Uint8Array }
  | { readonly url: string }
  | { readonly data: JsonValue }
)

/**
 * What an artifact holds. One that came in chunks (`isChunked`) is put together: text that follows text, and files of
 * the same filename, are one.
 */
export function artifactParts({ artifactId, name = artifactId, parts }: Artifact, isChunked: boolean): Given[] {
  const all = parts.map(part => given(part, name))
  if (!isChunked) return all
  const whole: Given[] = []
  for (const next of all) {
    const last = whole.at(-1)
    const joined = last && join(last, next)
    if (joined) whole.splice(-1, 1, joined)
    else whole.push(next)
  }
  return whole
}

/** What a message holds. */
export function messageParts({ parts }: Pick<Message, 'parts'>): Given[] {
  return parts.map(part => given(part, 'message'))
}

/** How much parts hold, in bytes. A url is not fetched, so it holds nothing. */
export function bytesIn(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + bytesOf(part), 0)
}

function bytesOf(part: Part): number {
  if ('text' in part) return Buffer.byteLength(part.text)
  if ('raw' in part) return Buffer.byteLength(part.raw, 'base64')
  return 'url' in part ? 0 : Buffer.byteLength(JSON.stringify(part.data))
}

function given(part: Part, fallback: string): Given {
  const about = { name: part.filename ?? fallback, filename: part.filename, mediaType: part.mediaType }
  if ('text' in part) return { ...about, text: part.text }
  if ('raw' in part) return { ...about, bytes: Buffer.from(part.raw, 'base64') }
  if ('url' in part) return { ...about, url: part.url }
  return { ...about, data: part.data }
}

/** Bytes without a filename could be any number of files, so they are joined only if a name says that they are one. */
function join(first: Given, second: Given): Given | undefined {
  if (first.filename !== second.filename) return undefined
  if ('text' in first && 'text' in second) return { ...first, text: first.text + second.text }
  if ('bytes' in first && 'bytes' in second && first.filename !== undefined) return { ...first, bytes: Buffer.concat([first.bytes, second.bytes]) }
  return undefined
}
