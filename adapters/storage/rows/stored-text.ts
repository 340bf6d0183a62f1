/** Whatever has to be escaped: all but printable ASCII, and the two characters that escapes are made with. */
const UNSAFE = /[^ !#-[\]-~]/

/**
 * A text as a key column holds it: printable ASCII as it is, everything else as JSON escapes it. So NUL and lone surrogates
 * survive, different texts stay different, the empty text comes first, and SQLite's order is that of JavaScript.
 */
export function storedText(text: string): string {
  if (!UNSAFE.test(text)) return text
  return JSON.stringify(text).slice(1, -1).replaceAll(/[^ -~]/g, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The text that {@link storedText} made this of. */
export function originalText(stored: string): string {
  return stored.includes('\\') ? (JSON.parse(`"${stored}"`) as string) : stored
}
