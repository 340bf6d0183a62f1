import { A2AError } from '../../machines/protocol/errors.ts'
import { UNCOUNTED_BYTES, type Unfinished } from '../../runtime/access/unfinished-bytes.ts'
import { turnEnd } from '../../runtime/primitives/event-loop.ts'
import type { HttpCall } from './call.ts'

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text that stands for bytes that are not UTF-8. A text may have it too. */
const REPLACEMENT = '\uFFFD'

/**
 * Reads the body of a call: UTF-8 of at most `limit` bytes. No body is ''. Counts its bytes and schedules its parsing. Throws
 * TooLarge, as early as possible, and ParseError for invalid UTF-8 and incomplete bodies. Gives the text if the body has arrived and
 * may be parsed now, else a promise.
 */
export function bodyOf(call: HttpCall, limit: number): Promise<string> | string {
  const length = call.request.headers.get('content-length')
  if (Number(length ?? 0) > limit) return Promise.reject(tooLarge(limit))
  call.served.direct?.invite?.()
  const arrived = call.request.takeArrived?.()
  if (arrived) return textOf(arrived, call)
  return length !== null && Number(length) <= UNCOUNTED_BYTES
    ? smallBody(call)
    : largeBody(call, limit, call.unfinished())
}

async function smallBody(call: HttpCall): Promise<string> {
  let bytes: ArrayBuffer | Uint8Array
  try {
    bytes = await call.request.arrayBuffer()
  } catch (cause) {
    throw incomplete(cause)
  }
  if (!call.served.direct) await turnEnd()
  return textOf(bytes, call)
}

/** The text of a small body, once it may be parsed. */
function textOf(bytes: ArrayBuffer | Uint8Array, call: HttpCall): Promise<string> | string {
  call.bytes = bytes.byteLength
  const turn = call.parsingTurn()
  return turn ? turn.then(() => decoded(bytes)) : decoded(bytes)
}

async function largeBody(call: HttpCall, limit: number, unfinished: Unfinished): Promise<string> {
  try {
    const bytes = await collected(call, limit, unfinished)
    await turnEnd()
    const turn = call.parsingTurn()
    if (turn) await turn
    const text = decoded(bytes)
    unfinished.count(0)
    return text
  } catch (cause) {
    unfinished.count(0)
    throw cause instanceof A2AError ? cause : incomplete(cause)
  }
}

function decoded(bytes: ArrayBuffer | Uint8Array): string {
  const text = Buffer.isBuffer(bytes) ? bytes.toString('utf8') : REPLACEMENT
  if (!text.includes(REPLACEMENT)) return text
  try {
    return UTF8.decode(bytes)
  } catch (cause) {
    throw new A2AError('ParseError', 'The body is not UTF-8.', { cause })
  }
}

async function collected(call: HttpCall, limit: number, unfinished: Unfinished): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for await (const chunk of call.request.body ?? []) {
    call.bytes += chunk.byteLength
    if (call.bytes > limit) throw tooLarge(limit)
    const full = unfinished.count(call.bytes)
    if (full) throw full
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function incomplete(cause: unknown): A2AError {
  return new A2AError('ParseError', 'The body is incomplete.', { cause })
}

function tooLarge(limit: number): A2AError {
  return new A2AError('TooLarge', `A body may have at most ${limit} bytes. Send large files by url.`)
}
