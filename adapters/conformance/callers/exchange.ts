import { A2AError } from '../../../machines/protocol/errors.ts'
import type { PlacedOptions } from '../../client/options.ts'
import { mediaType, wholeBody } from '../../client/transports/body.ts'
import { sendRequest } from '../../client/transports/http-request.ts'
import { eventsOf } from '../../client/transports/server-sent-events.ts'
import { Refusal } from './caller.ts'

/** An HTTP answer: JSON, or a stream of events. */
export interface HttpAnswer {
  readonly response: Response
  readonly json?: unknown
  /** The data of the next event; `undefined` at the end. */
  readonly next?: () => Promise<unknown>
}

/**
 * Sends a request, and reads the answer according to its media type. Throws the errors of `sendRequest`, including redirects. Throws
 * InvalidAgentResponse for an answer that is too long, or neither JSON nor a stream, and a Refusal with the status if HTTP failed.
 */
export async function exchange(
  url: string,
  init: RequestInit,
  access: PlacedOptions = {},
  send = sendRequest
): Promise<HttpAnswer> {
  const response = await send(url, init, access)
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
    throw new A2AError(
      'InvalidAgentResponse',
      `The answer (${what}) is not JSON: ${JSON.stringify(text.slice(0, 120))}`,
      { cause }
    )
  }
}
