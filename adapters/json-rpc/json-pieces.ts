/** The minimum length of a piece, except the last, and the maximum length of a text that is serialised at once. */
const PIECE = 64 * 1024

/** The depth to which a value is split; deeper values are serialised at once. A part of an artifact in a page of tasks is at 6. */
const DEPTH = 8

/** Serialises a large value in pieces, so that no piece blocks for long. Together they equal the output of JSON.stringify. */
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
  else if (depth === 0 || typeof value !== 'object' || value === null || 'toJSON' in value) yield JSON.stringify(value) ?? 'null'
  else if (Array.isArray(value)) {
    let before = '['
    for (const entry of value) {
      yield before
      yield* textsOf(entry, depth - 1)
      before = ','
    }
    yield before === '[' ? '[]' : ']'
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
