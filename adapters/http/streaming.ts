import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { eventStream, sentEvent } from './event-stream.ts'
import type { HttpCall } from './http-call.ts'
import { LightResponse } from './light-response.ts'

/** How a binding writes an event, and an error that ends the stream, both in one line. */
export interface Encoding {
  readonly encode: (event: object) => string
  readonly encodeError: (error: unknown) => string
}

/** What a stream adds to the context of its call. */
interface StreamTerms {
  readonly signal: AbortSignal
  readonly numbered: (generation: number) => void
}

/** What a stream's first event may take before the response begins without it. */
const FIRST_EVENT_MS = 1000

/**
 * Answers with a stream of server-sent events, each with its generation as `id`. Rejects with what goes wrong before the
 * first of them, for an ordinary answer. A stream ends with Unauthenticated when the credentials of its request run out.
 */
export async function streamed(
  { settings: { clock } }: Runtime,
  { principal, headers, outgoing }: HttpCall,
  open: (terms: StreamTerms) => AsyncGenerator<object, void, undefined>,
  encoding: Encoding
): Promise<Response> {
  const gone = new AbortController()
  let generation: number | undefined
  // Who leaves while nothing has come yet is noticed when the response begins: its body is canceled then.
  const events = open({ signal: gone.signal, numbered: number => void (generation = number) })
  const first = events.next()
  await early(first, clock)
  const { expiresAtMs = Infinity } = principal ?? {}
  const expiry = clock.setTimeout(() => gone.abort(expired()), expiresAtMs - clock.now())
  const framed = frames(first, events, { ...encoding, generation: () => generation, reason: () => gone.signal.reason, ended: () => clock.clearTimeout(expiry) })
  const body = eventStream(framed, clock, () => gone.abort(), outgoing && (() => outgoing.destroy()))
  return new LightResponse(body, { headers: { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache', 'X-Accel-Buffering': 'no', ...headers } })
}

/** Waits for the first event, but not for long: a client wants to know that its stream is open. */
async function early(first: Promise<unknown>, clock: Clock): Promise<void> {
  let timer: unknown
  const late = new Promise<void>(resolve => (timer = clock.setTimeout(resolve, FIRST_EVENT_MS)))
  try {
    await Promise.race([first, late])
  } finally {
    clock.clearTimeout(timer)
  }
}

/** What the text of a stream is made with. */
interface Framing extends Encoding {
  readonly generation: () => number | undefined
  /** Why the stream was stopped, if it was. */
  readonly reason: () => unknown
  readonly ended: () => void
}

async function* frames(
  first: Promise<IteratorResult<object, void>>,
  events: AsyncGenerator<object, void, undefined>,
  { encode, encodeError, generation, reason, ended }: Framing
): AsyncGenerator<string, void, undefined> {
  try {
    for (let step = await first; !step.done; step = await events.next()) yield sentEvent(encode(step.value), generation())
    if (isA2AError(reason())) throw reason()
  } catch (error) {
    yield sentEvent(encodeError(error), undefined)
  } finally {
    ended()
    await events.return()
  }
}

function expired(): A2AError {
  return new A2AError('Unauthenticated', 'The credentials of this request have run out. Ask again with fresh ones.')
}
