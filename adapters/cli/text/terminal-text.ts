/* oxlint-disable no-control-regex -- control characters are what this file is about */

/** Text that came from outside, as a terminal may show it: of the control characters only new lines and tabs are left. */
export function plain(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')
}

/** The same in one line. */
export function oneLine(text: string): string {
  return plain(text.replace(/\s+/g, ' ')).trim()
}

/** A value as one line of JSON that a terminal may show too. */
export function jsonLine(value: unknown): string {
  return `${JSON.stringify(value).replace(/[\u007f-\u009f]/g, character => `\\u00${character.charCodeAt(0).toString(16)}`)}\n`
}

/** A number of bytes, to be read by people: `532 bytes`, `45.1 kB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return bytes === 1 ? '1 byte' : `${bytes} bytes`
  return bytes < 999_950 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}

/** A word as it is pasted into a shell, which must take nothing in it for a command. */
export function shellWord(word: string): string {
  const shown = oneLine(word)
  return /^[\w@%+=:,./-]+$/.test(shown) ? shown : shellText(shown)
}

/** Text as it is pasted into a shell, always in quotes. */
export function shellText(text: string): string {
  const shown = oneLine(text)
  return /["$`\\!]/.test(shown) ? `'${shown.replaceAll("'", `'\\''`)}'` : `"${shown}"`
}
