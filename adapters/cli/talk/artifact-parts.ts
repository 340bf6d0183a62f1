import type { JsonValue } from '../../../machines/protocol/codec/json.ts'
import type { Artifact } from '../../../machines/protocol/objects.ts'
import type { Message, Part } from '../../../machines/protocol/parts.ts'

/** A part of an artifact or a message. `name` is its filename, or else the name of the whole. */
export type Given = {
  readonly name: string
  readonly filename: string | undefined
  readonly mediaType: string | undefined
} & (
  | { readonly text: string }
  | { readonly bytes: Uint8Array }
  | { readonly url: string }
  | { readonly data: JsonValue }
)

/** The parts of an artifact. If it came in chunks (`isChunked`), consecutive texts are joined, and so are chunks of the same file. */
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

/** The parts of a message. */
export function messageParts({ parts }: Pick<Message, 'parts'>): Given[] {
  return parts.map(part => given(part, 'message'))
}

/** The size of parts in bytes. URLs count 0, since they are not fetched. */
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

/** Bytes are joined only if they have the same filename: without one they could be separate files. */
function join(first: Given, second: Given): Given | undefined {
  if (first.filename !== second.filename) return undefined
  if ('text' in first && 'text' in second) return { ...first, text: first.text + second.text }
  if ('bytes' in first && 'bytes' in second && first.filename !== undefined)
    return { ...first, bytes: Buffer.concat([first.bytes, second.bytes]) }
  return undefined
}
