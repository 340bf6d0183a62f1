import { A2AError } from '../../../machines/protocol/errors.ts'
import { currentAddress, type PlacedOptions } from '../options.ts'
import { ConnectionLost } from '../retries/lost-errors.ts'
import { discard } from './body.ts'

/** Codes of Node errors that occur before anything is sent. */
const UNSENT = /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_.*|CERT_.*|DEPTH_ZERO_.*|SELF_SIGNED_.*|UNABLE_TO_.*)$/

/**
 * Sends a request and resolves with the response, of any status, when its headers arrive. Throws ConnectionLost without a response.
 * Throws InvalidAgentResponse for anything but HTTP, and for a redirect: following it could send credentials to another origin.
 * Throws TypeError for headers that HTTP cannot carry. Credentials in the query are not in the URL of the response, nor in errors.
 */
export async function sendRequest(url: string, init: RequestInit, options: PlacedOptions = {}): Promise<Response> {
  const address = currentAddress(url, options)
  const request = new Request(address, { ...init, redirect: 'manual' })
  const response = await fetch(request).catch(cause => {
    init.signal?.throwIfAborted()
    throw failureOf(cause, url)
  })
  if (address !== url) Object.defineProperty(response, 'url', { value: url })
  if (response.type !== 'opaqueredirect' && (response.status < 300 || response.status > 399)) return response
  discard(response)
  const place = response.headers.get('location')
  const to = place === null ? 'another place' : JSON.stringify(place.slice(0, 256))
  throw new A2AError('InvalidAgentResponse', `The agent at ${url} redirects to ${to}, which is not followed. Connect to the address that it moved to.`)
}

function failureOf(error: unknown, url: string): unknown {
  const { cause = error } = error as { cause?: unknown }
  const code = codeOf(cause)
  if (cause instanceof Error && cause.name === 'HTTPParserError') return new A2AError('InvalidAgentResponse', `The server at ${url} does not speak HTTP.`, { cause })
  return new ConnectionLost(code === '' ? 'no answer' : code, { isUnsent: UNSENT.test(code), cause })
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : ''
}
