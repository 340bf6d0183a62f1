import type * as z from 'zod'
import { isObject, type JsonValue } from '../../machines/protocol/codec/json.ts'
import type { Part } from '../../machines/protocol/parts.ts'
import type { Part01Schema } from './parts.ts'

/** A part of 0.1. */
export type Part01 = z.output<typeof Part01Schema>

/** The metadata key for data that is not an object in 1.0, and is wrapped as `{ value }`, as by the official SDK. */
const WRAPPED = 'data_part_compat'

/** Converts a part of 0.1 to 1.0. */
export function fromPart01(part: Part01): Part {
  const { [WRAPPED]: isWrapped, ...metadata } = part.metadata ?? {}
  const beside = Object.keys(metadata).length > 0 ? { metadata } : {}
  if ('text' in part) return { text: part.text, ...beside }
  if ('data' in part) return { data: (isWrapped === true ? part.data.value : part.data) as JsonValue, ...beside }
  const { name, mimeType } = part.file
  const others = {
    ...(name !== undefined && { filename: name }),
    ...(mimeType !== undefined && { mediaType: mimeType }),
    ...beside
  }
  return 'bytes' in part.file ? { raw: part.file.bytes, ...others } : { url: part.file.uri, ...others }
}

/** Converts a part to 0.1. */
export function toPart01(part: Part): Part01 {
  const { metadata, filename, mediaType } = part
  const beside = metadata ? { metadata } : {}
  if ('text' in part) return { type: 'text', text: part.text, ...beside }
  if ('data' in part) {
    if (isObject(part.data)) return { type: 'data', data: part.data, ...beside }
    return { type: 'data', data: { value: part.data }, metadata: { ...metadata, [WRAPPED]: true } }
  }
  const others = {
    ...(filename !== undefined && { name: filename }),
    ...(mediaType !== undefined && { mimeType: mediaType })
  }
  return {
    type: 'file',
    file: 'raw' in part ? { bytes: part.raw, ...others } : { uri: part.url, ...others },
    ...beside
  }
}
