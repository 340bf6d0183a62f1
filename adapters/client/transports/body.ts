import { A2AError } from '../../../machines/protocol/errors.ts'
import { ConnectionLost } from '../retries/lost-errors.ts'

/** The maximum length of an answer. */
const LONGEST_ANSWER_BYTES = 64 * 1024 * 1024

/** Reads a response as text. Throws ConnectionLost if it is interrupted, InvalidAgentResponse beyond `most` bytes, by default 64 MiB. */
export async function wholeBody(response: Response, most = LONGEST_ANSWER_BYTES): Promise<string> {
  let text = ''
  let bytes = 0
  const decoder = new TextDecoder()
  for await (const chunk of chunksOf(response)) {
    bytes += chunk.length
    if (bytes > most)
      throw new A2AError('InvalidAgentResponse', `The answer from ${response.url} is longer than ${most} bytes.`)
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}

/** The chunks of a body. Throws ConnectionLost if it is interrupted; leaving the loop ends the request. */
export async function* chunksOf({ body }: Response): AsyncGenerator<Uint8Array, void, undefined> {
  if (!body) return
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(cause => {
        throw new ConnectionLost('the answer was interrupted', { cause })
      })
      if (done) return
      yield value
    }
  } finally {
    // Not awaited: canceling a lost connection rejects again.
    void reader.cancel().catch(() => {})
  }
}

/** Cancels an unread body, which may be endless. */
export function discard({ body }: Response): void {
  // Not awaited: canceling a lost connection rejects.
  void body?.cancel().catch(() => {})
}

/** The media type of a response, without parameters; empty if it has none. */
export function mediaType({ headers }: Response): string {
  return (headers.get('content-type') ?? '').replace(/;.*$/s, '').trim().toLowerCase()
}

/** Whether a media type is JSON or a subtype such as `application/a2a+json`. A missing one counts as JSON. */
export function isJsonType(type: string): boolean {
  return type === '' || /^application\/(?:[\w.-]+\+)?json$/.test(type)
}
