/* oxlint-disable no-control-regex -- control characters are what this file is about */

/** Characters that nobody sees, and those that turn the direction of others or end a line. */
const UNSEEN = /[\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029]/u

/** The same, and the emoji that are made with them. TypeScript takes the flag v in literals only for newer targets. */
const EMOJI_OR_UNSEEN = new RegExp(
  String.raw`\p{RGI_Emoji}|([\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029])`,
  'gv'
)

/**
 * Removes control characters, except new lines and tabs, and shows invisible characters and direction marks as escapes such as
 * `\u202e`, so that untrusted text is safe on a terminal.
 */
export function plain(text: string): string {
  return seen(text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, ''))
}

/** Shows invisible characters and direction marks as escapes, except those within emoji. */
function seen(text: string): string {
  if (!UNSEEN.test(text)) return text
  return text.replace(EMOJI_OR_UNSEEN, (found: string, unseen: string | undefined) =>
    unseen === undefined ? found : escaped(unseen)
  )
}

function escaped(text: string): string {
  return text
    .split('')
    .map(unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
}

/** Does the same, and joins the lines. */
export function oneLine(text: string): string {
  return plain(text.replace(/\s+/g, ' ')).trim()
}

/** A thrown value as text, also one whose conversion throws. */
export function thrownText(thrown: unknown): string {
  try {
    return thrown instanceof Error ? thrown.message : String(thrown)
  } catch {
    return `A value of type ${typeof thrown}`
  }
}

/** A value as one line of JSON that is safe on a terminal. */
export function jsonLine(value: unknown): string {
  return `${seen(JSON.stringify(value).replace(/[\u007f-\u009f]/g, escaped))}\n`
}

/** A number of bytes for people: `532 bytes`, `45.1 kB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return bytes === 1 ? '1 byte' : `${bytes} bytes`
  return bytes < 999_950 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}

/** A word for a shell, quoted if needed. */
export function shellWord(word: string): string {
  const shown = oneLine(word)
  return /^[\w@%+=:,./-]+$/.test(shown) ? shown : shellText(shown)
}

/** Text for a shell, always quoted. */
export function shellText(text: string): string {
  const shown = oneLine(text)
  return /["$`\\!]/.test(shown) ? `'${shown.replaceAll("'", `'\\''`)}'` : `"${shown}"`
}
