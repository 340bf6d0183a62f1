import type { Part } from '../../../../machines/protocol/objects.ts'

/** A complete content of a message or an artifact. */
export type Content =
  | { readonly kind: 'text'; readonly text: string; readonly name: string; readonly mediaType: string }
  | { readonly kind: 'data'; readonly data: unknown }
  | { readonly kind: 'url'; readonly url: string; readonly name: string; readonly mediaType: string }
  | {
      readonly kind: 'bytes'
      readonly bytes: Uint8Array<ArrayBuffer>
      readonly name: string
      readonly mediaType: string
    }

/** The contents of parts: consecutive texts are joined, and so are chunks of one file. */
export function contentsOf(parts: readonly Part[]): Content[] {
  const groups: Part[][] = []
  for (const part of parts) {
    const last = groups.at(-1)
    if (last?.[0] && goesOn(last[0], part)) last.push(part)
    else groups.push([part])
  }
  return groups.map(contentOf)
}

function goesOn(first: Part, next: Part): boolean {
  if (first.filename !== next.filename || first.mediaType !== next.mediaType) return false
  return ('text' in first && 'text' in next) || ('raw' in first && 'raw' in next && first.filename !== undefined)
}

function contentOf(parts: Part[]): Content {
  const [first] = parts as [Part]
  const named = { name: first.filename ?? '', mediaType: first.mediaType ?? '' }
  if ('text' in first)
    return { kind: 'text', ...named, text: parts.map(part => ('text' in part ? part.text : '')).join('') }
  if ('data' in first) return { kind: 'data', data: first.data }
  if ('url' in first) return { kind: 'url', ...named, url: first.url }
  const pieces = parts.map(part => ('raw' in part ? bytesOf(part.raw) : new Uint8Array()))
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return { kind: 'bytes', ...named, bytes }
}

function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64.replaceAll('-', '+').replaceAll('_', '/')), char => char.charCodeAt(0))
}
