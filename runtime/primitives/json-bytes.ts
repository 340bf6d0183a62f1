/** What a member or an entry takes beside its text: quotes, colon and comma. */
const AROUND = 4

/** About how long a value is as JSON text, in bytes of UTF-8: exact but for escapes and the digits of numbers. It does not recurse. */
export function jsonBytes(value: unknown): number {
  let bytes = 0
  const rest = [value]
  while (rest.length > 0) {
    const next = rest.pop()
    bytes += AROUND
    if (typeof next === 'string') bytes += Buffer.byteLength(next)
    else if (Array.isArray(next)) for (const entry of next) rest.push(entry)
    else if (typeof next === 'object' && next !== null) {
      for (const name of Object.keys(next)) {
        bytes += AROUND + name.length
        rest.push((next as Record<string, unknown>)[name])
      }
    }
  }
  return bytes
}
