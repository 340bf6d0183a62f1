import { A2AError } from '../../../machines/protocol/errors.ts'
import { mediaType, wholeBody } from '../../client/transports/body.ts'
import { sendRequest } from '../../client/transports/http-request.ts'
import { eventsOf } from '../../client/transports/server-sent-events.ts'
import { Refusal } from './caller.ts'

/** An answer over HTTP: JSON, or a stream of what its events hold. */
export interface HttpAnswer {
  readonly response: Response
  readonly json?: unknown
  /** The next event's data; `undefined` at the end. */
  readonly next?: () => Promise<unknown>
}

/**
 * Asks, and reads the answer as far as its media type says what it is. Throws what `sendRequest` throws, redirects among it;
 * InvalidAgentResponse for what is too long, and for what is neither JSON nor a stream; such errors of HTTP are Refusals with the status.
 */
export async function exchange(url: string, init: RequestInit): Promise<HttpAnswer> {
  const response = await sendRequest(url, init)
  const type = mediaType(response)
  if (type !== 'text/event-stream') return { response, json: jsonIn(await wholeBody(response), response) }
  const events = eventsOf(response)
  const next = async () => {
    const { done, value } = await events.next()
    return done ? undefined : parsed(value, 'an event')
  }
  return { response, next }
}

function jsonIn(text: string, { ok, status }: Response): unknown {
  if (ok) return parsed(text || 'null', `HTTP ${status}`)
  try {
    return JSON.parse(text)
  } catch {
    throw new Refusal(String(status), text.slice(0, 120), [])
  }
}

function parsed(text: string, what: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new A2AError('InvalidAgentResponse', `The answer (${what}) is not JSON: ${JSON.stringify(text.slice(0, 120))}`, { cause })
  }
}
