import type { JsonValue } from '../../../../machines/protocol/codec/json.ts'
import type { Part } from '../../../../machines/protocol/parts.ts'

/** Bytes of a file that are encoded at once: `String.fromCharCode` takes no more arguments. */
const AT_ONCE = 0x8000

/** A file as a part. */
export async function filePart(file: File): Promise<Part> {
  const bytes = new Uint8Array(await file.arrayBuffer())
  let binary = ''
  for (let at = 0; at < bytes.length; at += AT_ONCE) binary += String.fromCharCode(...bytes.subarray(at, at + AT_ONCE))
  return { raw: btoa(binary), filename: file.name, ...(file.type !== '' && { mediaType: file.type }) }
}

/** JSON text as a data part; what is wrong with it, if it is none. */
export function dataPart(json: string): Part | string {
  try {
    return { data: JSON.parse(json) as JsonValue }
  } catch (error) {
    return `The data has to be JSON: ${error instanceof Error ? error.message : ''}`
  }
}
