import { A2AError } from '../../../machines/protocol/errors.ts'
import { ConnectionLost } from '../retries/lost-errors.ts'
import { discard } from './body.ts'

/** Errors of Node that come before anything of a request was sent. */
const UNSENT = /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_.*|CERT_.*|DEPTH_ZERO_.*|SELF_SIGNED_.*|UNABLE_TO_.*)$/

/**
 * Sends a request and resolves with the response, whatever its status is, when its headers are there. Throws
 * ConnectionLost when there is none; InvalidAgentResponse for what is not HTTP and for a redirect, which is never
 * followed: credentials would go where nobody asked. Throws TypeError for headers that HTTP cannot carry.
 */
export async function sendRequest(url: string, init: RequestInit): Promise<Response> {
  const request = new Request(url, { ...init, redirect: 'manual' })
  const response = await fetch(request).catch(cause => {
    init.signal?.throwIfAborted()
    throw failureOf(cause, url)
  })
  if (response.type !== 'opaqueredirect' && (response.status < 300 || response.status > 399)) return response
  discard(response)
  const place = response.headers.get('location')
  const to = place === null ? 'another place' : JSON.stringify(place.slice(0, 256))
  throw new A2AError('InvalidAgentResponse', `The agent at ${url} redirects to ${to}, which is not followed. Connect to the address that it moved to.`)
}

function failureOf(error: unknown, url: string): unknown {
  const { cause = error } = error as { cause?: unknown }
  const code = codeOf(cause)
  if (cause instanceof Error && cause.name === 'HTTPParserError') return new A2AError('InvalidAgentResponse', `What is at ${url} does not speak HTTP.`, { cause })
  return new ConnectionLost(code === '' ? 'no answer' : code, { isUnsent: UNSENT.test(code), cause })
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : ''
}
