import type { LookupAddress } from 'node:dns'
import { request as requestHttp, type ClientRequest, type IncomingMessage } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import type { WebhookAnswer, WebhookPost } from '../../runtime/ports/webhook-sender.ts'
import { onReceived } from '../../runtime/primitives/event-loop.ts'
import type { CheckedAddress } from './webhook-address.ts'

/**
 * The number of bytes of an answer that are read and ignored, so that a usual answer ends without closing the
 * connection.
 */
const READ_BYTES = 64 * 1024

/** The maximum number of interim answers (1xx). */
const INTERIM_ANSWERS = 8

/**
 * Posts to a checked URL, on a new connection to one of its checked IP addresses. Redirects are not followed. The
 * status is the result, whatever happens to the rest of the answer.
 */
export function post(
  { url, addresses }: CheckedAddress,
  { headers, body }: WebhookPost,
  signal: AbortSignal
): Promise<WebhookAnswer> {
  return new Promise(resolve => {
    const options = {
      method: 'POST',
      agent: false,
      lookup: pinned(addresses),
      signal,
      headers: { ...headers, 'User-Agent': 'taskchart', 'Content-Length': Buffer.byteLength(body) }
    }
    const request = url.protocol === 'https:' ? requestHttps(url, options) : requestHttp(url, options)
    let answer: WebhookAnswer = { failure: 'the connection was closed without an answer' }
    boundInterim(request)
    request.on('response', response => {
      answer = { status: Number(response.statusCode), retryAfter: response.headers['retry-after'] }
      drain(response, () => request.destroy())
    })
    request.on('error', error => {
      if ('failure' in answer) answer = { failure: failureOf(error) }
    })
    request.on('close', () => resolve(answer))
    request.end(body)
  })
}

/** A look-up that returns the checked addresses, whatever the name resolves to now. */
function pinned(addresses: readonly string[]): LookupFunction {
  const found = addresses.map(address => ({ address, family: isIP(address) }))
  return (_host, { all }, callback) => {
    const { address, family } = found[0] as LookupAddress
    if (all) callback(null, found)
    /* c8 ignore next -- Node requests all addresses, unless the program has disabled that */
    else callback(null, address, family)
  }
}

function boundInterim(request: ClientRequest): void {
  let interim = 0
  request.on('information', () => {
    interim += 1
    if (interim > INTERIM_ANSWERS) request.destroy(new TypeError('too many interim answers'))
  })
}

/** Reads an answer, and calls `enough` at the limit. */
function drain(response: IncomingMessage, enough: () => void): void {
  let bytes = 0
  const count = (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > READ_BYTES) enough()
  }
  onReceived(response, 'data', count)
  // Later errors do not change the result.
  response.on('error', () => {})
}

/** A description of an error that contains nothing of the request. */
function failureOf(error: Error & { readonly code?: unknown }): string {
  return typeof error.code === 'string' ? `no connection (${error.code})` : 'no connection'
}
