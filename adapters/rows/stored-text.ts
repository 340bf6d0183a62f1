/** Characters to escape: all but printable ASCII, and the two characters of the escapes. */
const UNSAFE = /[^ !#-[\]-~]/

/**
 * A text for a key column: printable ASCII is unchanged, everything else is escaped as in JSON. So NUL and lone surrogates survive,
 * different texts stay different, the empty text sorts first, and SQLite sorts like JavaScript.
 */
export function storedText(text: string): string {
  if (!UNSAFE.test(text)) return text
  return JSON.stringify(text)
    .slice(1, -1)
    .replaceAll(/[^ -~]/g, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The inverse of {@link storedText}. */
export function originalText(stored: string): string {
  return stored.includes('\\') ? (JSON.parse(`"${stored}"`) as string) : stored
}
