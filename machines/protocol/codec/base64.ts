const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const NOT_STANDARD = /[^A-Za-z0-9+/]/

/**
 * Gives base64 in its one canonical form: the standard alphabet, padded, unused bits zero (RFC 4648 §4).
 *
 * Takes the standard or the URL-safe alphabet, with padding or without, as ProtoJSON does for `bytes`; equal
 * bytes always give equal text. Anything else, white space included, gives `undefined`.
 */
export function canonicalBase64(text: string): string | undefined {
  const body = withoutPadding(text)
  const standard = NOT_STANDARD.test(body) ? body.replaceAll('-', '+').replaceAll('_', '/') : body
  if (standard.length % 4 === 1 || NOT_STANDARD.test(standard)) return undefined
  const padding = (4 - (standard.length % 4)) % 4
  const written = text.length - body.length
  if (written !== 0 && written !== padding) return undefined
  return padding === 0 ? standard : withoutUnusedBits(standard, padding) + '='.repeat(padding)
}

function withoutPadding(text: string): string {
  if (text.endsWith('==')) return text.slice(0, -2)
  return text.endsWith('=') ? text.slice(0, -1) : text
}

/** The last character holds 6 bits, of which the last two (one `=`) or four (two) belong to no byte. */
function withoutUnusedBits(text: string, padding: number): string {
  const last = ALPHABET.indexOf(text.slice(-1))
  return text.slice(0, -1) + ALPHABET.charAt(last - (last % 4 ** padding))
}
