import type { CallContext } from '../../runtime/call.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { eventStream, sentEvent } from './event-stream.ts'
import type { HttpCall } from './http-call.ts'

/** How a binding writes an event, and an error that ends the stream, both in one line. */
export interface Encoding {
  readonly encode: (event: object) => string
  readonly encodeError: (error: unknown) => string
}

/** What a stream adds to the context of its call. */
type StreamTerms = Pick<CallContext, 'signal' | 'numbered'>

/** What a stream's first event may take before the response begins without it. */
const FIRST_EVENT_MS = 1000

/**
 * Answers with a stream of server-sent events, each with its generation as `id`. Rejects with what goes wrong before the
 * first of them, for an ordinary answer.
 */
export async function streamed(
  { settings: { clock } }: Runtime,
  { headers }: HttpCall,
  open: (terms: StreamTerms) => AsyncGenerator<object, void, undefined>,
  encoding: Encoding
): Promise<Response> {
  const gone = new AbortController()
  let generation: number | undefined
  // Who leaves while nothing has come yet is noticed when the response begins: its body is canceled then.
  const events = open({ signal: gone.signal, numbered: number => void (generation = number) })
  const first = events.next()
  let timer: unknown
  const late = new Promise<void>(resolve => (timer = clock.setTimeout(resolve, FIRST_EVENT_MS)))
  try {
    await Promise.race([first, late])
  } finally {
    clock.clearTimeout(timer)
  }
  const body = eventStream(framed(first, events, encoding, () => generation), clock, () => gone.abort())
  return new Response(body, { headers: { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache', 'X-Accel-Buffering': 'no', ...headers } })
}

async function* framed(
  first: Promise<IteratorResult<object, void>>,
  events: AsyncGenerator<object, void, undefined>,
  { encode, encodeError }: Encoding,
  generation: () => number | undefined
): AsyncGenerator<string, void, undefined> {
  try {
    for (let step = await first; !step.done; step = await events.next()) yield sentEvent(encode(step.value), generation())
  } catch (error) {
    yield sentEvent(encodeError(error), undefined)
  } finally {
    await events.return()
  }
}
