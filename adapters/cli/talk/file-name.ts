import { posix, win32 } from 'node:path'

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

/** Most file systems allow names of 255 bytes; this leaves room for an extension and a number. */
const NAME_BYTES = 200

/** More of a name is not looked at: neither of its beginning nor, for the extension, of its end. */
const SEEN_CHARACTERS = 1000

/**
 * Turns an untrusted name into a safe file name for every system. It has no path, no control or invisible characters, and nothing that
 * Windows reserves. It is neither hidden nor too long. Without an extension, it gets the extension of its media type.
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
export function numbered(name: string, n: number): string {
  const { name: stem, ext } = posix.parse(name)
  return n === 1 ? name : `${stem}-${n}${ext}`
}

/** Windows reserves these names for devices, even with trailing spaces and an extension: `aux .txt`. */
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[\d¹²³])\s*(?:\.|$)/i

/** Whether Windows takes a name for a device. */
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
