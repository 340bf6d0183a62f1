import { A2AError } from '../../machines/protocol/errors.ts'
import { UNCOUNTED_BYTES, type Unfinished } from '../../runtime/access/unfinished-bytes.ts'
import { turnEnd } from '../../runtime/primitives/event-loop.ts'
import type { HttpRequest } from '../entry/connection.ts'

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The number of bytes read from a body. */
export interface BodySize {
  bytes: number
}

/** Counts the bytes of a body until it is parsed; `turn` schedules the parsing of so many bytes. */
export interface BodyIntake {
  readonly size: BodySize
  readonly unfinished: () => Unfinished
  readonly turn: (bytes: number) => Promise<void> | undefined
}

/**
 * Reads the body of a request: UTF-8 of at most `limit` bytes. No body is ''. `intake` counts its bytes and schedules its parsing. Throws
 * TooLarge, as early as possible, and ParseError for invalid UTF-8 and incomplete bodies. Resolves at the end of a turn of the event loop,
 * so that requests that arrive together run each step together. This uses the processor's caches and takes a sixth less time.
 */
export async function bodyOf(request: HttpRequest, limit: number, intake?: BodyIntake): Promise<string> {
  const length = request.headers.get('content-length')
  if (Number(length ?? 0) > limit) throw tooLarge(limit)
  const isSmall = length !== null && Number(length) <= UNCOUNTED_BYTES
  const size = intake?.size ?? { bytes: 0 }
  const unfinished = isSmall ? undefined : intake?.unfinished()
  try {
    const bytes = await (isSmall ? request.arrayBuffer() : collected(request.body, limit, size, unfinished))
    size.bytes = bytes.byteLength
    await turnEnd()
    const turn = intake?.turn(size.bytes)
    if (turn) await turn
    const text = decoded(bytes)
    unfinished?.count(0)
    return text
  } catch (cause) {
    unfinished?.count(0)
    throw cause instanceof A2AError ? cause : new A2AError('ParseError', 'The body is incomplete.', { cause })
  }
}

function decoded(bytes: ArrayBuffer | Uint8Array): string {
  try {
    return UTF8.decode(bytes)
  } catch (cause) {
    throw new A2AError('ParseError', 'The body is not UTF-8.', { cause })
  }
}

async function collected(body: HttpRequest['body'], limit: number, size: BodySize, unfinished: Unfinished | undefined): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body ?? []) {
    size.bytes += chunk.byteLength
    if (size.bytes > limit) throw tooLarge(limit)
    const full = unfinished?.count(size.bytes)
    if (full) throw full
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function tooLarge(limit: number): A2AError {
  return new A2AError('TooLarge', `A body may have at most ${limit} bytes. Send large files by url.`)
}
