/** The minimum length of a piece, except the last, and about the maximum length of what is serialised at once. */
const PIECE = 64 * 1024

/** The length of a number or a literal, roughly, and of what is around a value. */
const AROUND = 4

/**
 * The depth to which a value is split; deeper values are serialised at once. A part of an artifact in a page of tasks
 * is at 6.
 */
const DEPTH = 8

/**
 * Serialises a large value in pieces, so that no piece blocks for long. Together they equal the output of
 * JSON.stringify.
 */
export function* jsonPieces(value: unknown): Generator<string, void, undefined> {
  let piece = ''
  for (const text of textsOf(value, DEPTH)) {
    piece += text
    if (piece.length < PIECE) continue
    yield piece
    piece = ''
  }
  yield piece
}

function* textsOf(value: unknown, depth: number): Generator<string, void, undefined> {
  if (typeof value === 'string' && value.length > PIECE) yield* slicesOf(value)
  else if (
    depth === 0 ||
    typeof value !== 'object' ||
    value === null ||
    'toJSON' in value ||
    leftAfter(value, PIECE) >= 0
  )
    yield JSON.stringify(value)
  else if (Array.isArray(value)) {
    let before = '['
    for (let start = 0; start < value.length;) {
      const end = endOfPiece(value, start)
      yield before
      if (end > start) yield JSON.stringify(value.slice(start, end)).slice(1, -1)
      else yield* textsOf(value[start], depth - 1)
      before = ','
      start = Math.max(end, start + 1)
    }
    yield ']'
  } else {
    let before = '{'
    for (const [name, member] of Object.entries(value)) {
      if (member === undefined) continue
      yield `${before}${JSON.stringify(name)}:`
      yield* textsOf(member, depth - 1)
      before = ','
    }
    yield before === '{' ? '{}' : '}'
  }
}

/**
 * The end of the entries from `start` that together are not too long to be serialised at once; `start` if the first
 * alone is too long.
 */
function endOfPiece(entries: readonly unknown[], start: number): number {
  let end = start
  for (let left = PIECE; end < entries.length; end += 1) {
    left = leftAfter(entries[end], left)
    if (left < 0) break
  }
  return end
}

/**
 * Subtracts the length of a value's text from `length`, roughly. Stops when the result is below 0, so that a long value
 * is not walked to its end.
 */
function leftAfter(value: unknown, length: number): number {
  let left = length - AROUND
  if (typeof value === 'string') return left - value.length
  if (typeof value !== 'object' || value === null) return left
  if (Array.isArray(value)) {
    for (let place = 0; place < value.length && left >= 0; place += 1) left = leftAfter(value[place], left)
    return left
  }
  for (const name in value) {
    left = leftAfter((value as Readonly<Record<string, unknown>>)[name], left - name.length)
    if (left < 0) break
  }
  return left
}

function* slicesOf(text: string): Generator<string, void, undefined> {
  yield '"'
  for (let start = 0; start < text.length;) {
    const last = text.charCodeAt(start + PIECE - 1)
    // Does not split a surrogate pair.
    const end = last >= 0xd800 && last < 0xdc00 ? start + PIECE - 1 : start + PIECE
    yield JSON.stringify(text.slice(start, end)).slice(1, -1)
    start = end
  }
  yield '"'
}
