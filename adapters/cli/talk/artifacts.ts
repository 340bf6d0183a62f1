import { join, posix, resolve, win32 } from 'node:path'
import type { JsonValue } from '../../../machines/protocol/codec/json.ts'
import type { Artifact, Message, Part } from '../../../machines/protocol/objects.ts'
import { CommandError } from '../command.ts'
import { makeFolder, writeNew } from '../files.ts'

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

/**
 * The parts of an artifact. If it came in chunks (`isChunked`), consecutive texts are joined, and so are chunks of the
 * same file.
 */
export function artifactParts({ artifactId, name = artifactId, parts }: Artifact, isChunked: boolean): Given[] {
  const all = parts.map(part => given(part, name))
  if (!isChunked) return all
  const whole: Given[] = []
  for (const next of all) {
    const last = whole.at(-1)
    const joined = last && joinParts(last, next)
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
export function sizeOfParts(parts: readonly Part[]): number {
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
function joinParts(first: Given, second: Given): Given | undefined {
  if (first.filename !== second.filename) return undefined
  if ('text' in first && 'text' in second) return { ...first, text: first.text + second.text }
  if ('bytes' in first && 'bytes' in second && first.filename !== undefined)
    return { ...first, bytes: Buffer.concat([first.bytes, second.bytes]) }
  return undefined
}

/**
 * Saves a result in a folder, which it creates, and resolves with the path relative to `folder`'s parent. Names are
 * made safe. Existing files are never overwritten: the new one gets a number.
 */
export async function saveGiven(given: Exclude<Given, { url: string }>, folder: string, cwd: string): Promise<string> {
  const name = nameOf(given)
  try {
    await makeFolder(resolve(cwd, folder))
    return await writeFree(
      n => join(folder, numbered(name, n)),
      path => isWritten(resolve(cwd, path), contentOf(given))
    )
  } catch (cause) {
    throw new CommandError(
      `${join(folder, name)} could not be saved: ${(cause as Error).message}. Give another folder with --out.`,
      { cause }
    )
  }
}

/** Writes to the first free path, by number from 1. */
async function writeFree(
  pathOf: (n: number) => string,
  isWritten: (path: string) => Promise<boolean>,
  n = 1
): Promise<string> {
  const path = pathOf(n)
  return (await isWritten(path)) ? path : writeFree(pathOf, isWritten, n + 1)
}

function nameOf(given: Exclude<Given, { url: string }>): string {
  if ('bytes' in given) return safeFileName(given.name, given.mediaType)
  if ('text' in given) return safeFileName(given.name, given.mediaType ?? 'text/plain')
  const name = safeFileName(given.name, 'application/json')
  return name.endsWith('.json') ? name : `${name}.json`
}

function contentOf(given: Exclude<Given, { url: string }>): string | Uint8Array {
  if ('bytes' in given) return given.bytes
  return 'text' in given ? given.text : `${JSON.stringify(given.data, null, 2)}\n`
}

/** Writes a new file. Resolves with false if a file or a link has that path. */
async function isWritten(path: string, content: string | Uint8Array): Promise<boolean> {
  try {
    await writeNew(path, content)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  'application/gzip': '.gz',
  'application/json': '.json',
  'application/pdf': '.pdf',
  'application/xml': '.xml',
  'application/zip': '.zip',
  'audio/mpeg': '.mp3',
  'audio/ogg': '.ogg',
  'audio/wav': '.wav',
  'image/gif': '.gif',
  'image/jpeg': '.jpg',
  'image/png': '.png',
  'image/svg+xml': '.svg',
  'image/webp': '.webp',
  'text/css': '.css',
  'text/csv': '.csv',
  'text/html': '.html',
  'text/javascript': '.js',
  'text/markdown': '.md',
  'text/plain': '.txt',
  'video/mp4': '.mp4',
  'video/webm': '.webm'
}

/** The media type for the extension of a file, such as `.png`; `undefined` for an unknown one. */
export function mediaTypeOf(extension: string): string | undefined {
  const wanted = extension.toLowerCase()
  return Object.keys(EXTENSIONS).find(type => EXTENSIONS[type] === wanted)
}

/** Most file systems allow names of 255 bytes; the rest is for an extension and a number. */
const NAME_BYTES = 200

/** More of a name is not looked at: neither of its beginning nor, for the extension, of its end. */
const SEEN_CHARACTERS = 1000

/**
 * Turns an untrusted name into a safe file name for every system. It has no path, no control or invisible characters,
 * and nothing that Windows reserves. It is neither hidden nor too long. Without an extension, it gets the extension of
 * its media type.
 */
export function safeFileName(name: string, mediaType?: string): string {
  const seen = seenPart(win32.basename(name))
  const safe = unreserved(
    seen
      .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '')
      .replace(/[<>:"|?*]/g, '_')
      .replace(/^[.\s]+|[.\s]+$/gu, '')
  )
  const { name: stem, ext } = posix.parse(safe)
  return shortened(stem || 'artifact', ext || extensionOf(mediaType))
}

/** The beginning and the end of a long name. */
function seenPart(name: string): string {
  return name.length > 2 * SEEN_CHARACTERS ? `${name.slice(0, SEEN_CHARACTERS)}${name.slice(-SEEN_CHARACTERS)}` : name
}

/** The name for the n-th file of this name: `picture.png`, `picture-2.png`. */
function numbered(name: string, n: number): string {
  const { name: stem, ext } = posix.parse(name)
  return n === 1 ? name : `${stem}-${n}${ext}`
}

/** Windows reserves these names for devices, even with trailing spaces and an extension: `aux .txt`. */
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[\d¹²³])\s*(?:\.|$)/i

/** Whether a name is one of a device on Windows. */
export function isDeviceName(name: string): boolean {
  return DEVICE.test(name)
}

function unreserved(name: string): string {
  return isDeviceName(name) ? `_${name}` : name
}

function extensionOf(mediaType = ''): string {
  return EXTENSIONS[mediaType.replace(/;.*/s, '').trim().toLowerCase()] ?? ''
}

function shortened(stem: string, ext: string): string {
  const extension = Buffer.byteLength(ext) > NAME_BYTES / 4 ? '' : ext
  const characters = Array.from(stem)
  while (Buffer.byteLength(characters.join('') + extension) > NAME_BYTES) characters.pop()
  return characters.join('') + extension
}
