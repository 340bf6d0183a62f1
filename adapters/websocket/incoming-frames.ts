import type { Socket } from 'node:net'
import { onReceived } from '../../runtime/primitives/received.ts'
import type { FrameWatch } from './frame-limits.ts'

/** The first byte of a whole message of text: FIN, no extension, opcode 1. */
const WHOLE_TEXT = 0x81

const MASKED = 0x80

/** Stands for bytes that are not UTF-8. A text may have it too. */
const REPLACEMENT = '\uFFFD'

/** The reader of one connection. */
export interface FrameReader {
  /** Knows whether the last frame, and its message, was complete. */
  readonly watch: Pick<FrameWatch, 'isBetweenMessages'>
  /** The maximum size of a message, in bytes. */
  readonly most: number
  /** Reads a message, of so many bytes. */
  readonly read: (text: string, bytes: number) => void
  /** Called before `ws` gets the rest of a chunk, which may end the connection. */
  readonly before: () => void
  /** Called after the messages of a chunk, with the bytes that `ws` has got, if any. */
  readonly arrived: (rest: Buffer | undefined) => void
  /** Called with an error of the reader. */
  readonly fail: (error: unknown) => void
}

/**
 * Reads messages from the socket below `ws` if each is one frame in one chunk, as nearly all are. Everything else goes
 * to `ws`: other frames, malformed ones, and their messages and errors. A frame takes `ws` four Buffers and three
 * events: an answer of GetTask then allocates 0.9 kB more (Node 24; `npm run bench -- --only get`).
 */
export function readWholeFrames(stream: Socket, reader: FrameReader): void {
  const [forward] = stream.listeners('data')
  const read = (chunk: Buffer) => {
    const at = reader.watch.isBetweenMessages ? readFrames(chunk, reader) : 0
    const rest = at < chunk.length ? chunk.subarray(at) : undefined
    if (rest) {
      reader.before()
      forward?.call(stream, rest)
    }
    reader.arrived(rest)
  }
  if (forward) stream.off('data', forward as (chunk: Buffer) => void)
  // As with the listeners of `once`, the property makes `ws` remove this listener when it removes its own.
  onReceived(stream, 'data', read, reader.fail, { listener: forward })
}

/** Reads the messages at the start of a chunk. Gives the offset of the first byte that is not read. */
function readFrames(chunk: Buffer, { most, read }: FrameReader): number {
  let at = 0
  while (chunk[at] === WHOLE_TEXT) {
    const short = chunk[at + 1] ?? 0
    const start = at + (short === (MASKED | 126) ? 8 : 6)
    const length = short === (MASKED | 126) ? lengthAt(chunk, at + 2) : short - MASKED
    const end = start + length
    if (short < MASKED || short === (MASKED | 127) || length > most || end > chunk.length) return at
    unmask(chunk, start, end)
    const text = chunk.toString('utf8', start, end)
    if (text.includes(REPLACEMENT)) return at
    read(text, length)
    at = end
  }
  return at
}

/** The length in two bytes; too large if they have not arrived. */
function lengthAt(chunk: Buffer, at: number): number {
  return at + 2 > chunk.length ? Infinity : chunk.readUInt16BE(at)
}

/** Unmasks a payload in place. The mask before it becomes zero, so that it may be unmasked again. */
function unmask(chunk: Buffer, start: number, end: number): void {
  const mask = chunk.readUInt32BE(start - 4)
  chunk.writeUInt32BE(0, start - 4)
  for (let i = start; i < end; i += 1) chunk[i] = (chunk[i] as number) ^ (mask >>> (24 - 8 * ((i - start) & 3)))
}
