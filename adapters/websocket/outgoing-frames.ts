/** The bytes of a header before a text of less than 64 KiB, and before any other. */
const SHORT_HEADER = 4
const LONG_HEADER = 10

/** Memory that is filled from its start to its end, and then replaced: a Buffer of its own for each flush takes twice as long. */
const BLOCK_BYTES = 64 * 1024

let block = Buffer.allocUnsafeSlow(BLOCK_BYTES)
let used = 0

/**
 * The bytes of unmasked text frames (RFC 6455 §5.2), one for each three texts, which follow one another in it. `ws` makes two Buffers, two
 * writes and an object of options for each frame: an answer of GetTask then allocates 1.2 kB more (Node 24; `npm run bench -- --only get`).
 */
export function framesOf(texts: readonly string[]): Buffer {
  makeRoom(texts)
  const start = used
  for (let i = 0; i < texts.length; i += 3)
    writeFrame(texts[i] as string, texts[i + 1] as string, texts[i + 2] as string)
  return block.subarray(start, used)
}

/** Makes the rest of the block large enough. A character takes at most three bytes. */
function makeRoom(texts: readonly string[]): void {
  let most = 0
  for (const text of texts) most += LONG_HEADER + 3 * text.length
  if (most <= block.length - used) return
  const bytes = texts.reduce((sum, text) => sum + LONG_HEADER + Buffer.byteLength(text), 0)
  if (bytes <= block.length - used) return
  block = Buffer.allocUnsafeSlow(Math.max(bytes, BLOCK_BYTES))
  used = 0
}

function writeFrame(head: string, body: string, end: string): void {
  const at = used
  const length = head.length + body.length + end.length
  const expected = headerLength(length)
  used += expected
  used += block.write(head, used)
  used += block.write(body, used)
  used += block.write(end, used)
  const bytes = used - at - expected
  const header = headerLength(bytes)
  // Other characters than those of ASCII may make the header longer than the number of characters lets expect.
  if (header !== expected) block.copyWithin(at + header, at + expected, used)
  used += header - expected
  block[at] = 0x81
  block[at + 1] = header === 2 ? bytes : header === SHORT_HEADER ? 126 : 127
  if (header === SHORT_HEADER) block.writeUInt16BE(bytes, at + 2)
  if (header === LONG_HEADER) block.writeBigUInt64BE(BigInt(bytes), at + 2)
}

function headerLength(bytes: number): number {
  return bytes < 126 ? 2 : bytes < 0x1_00_00 ? SHORT_HEADER : LONG_HEADER
}
