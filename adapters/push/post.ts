import { request as requestHttp, type ClientRequest, type IncomingMessage } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import type { WebhookAnswer, WebhookPost } from '../../runtime/ports/webhook-sender.ts'
import type { CheckedAddress } from './webhook-address.ts'

/** How much of an answer is read, which nobody looks at: so much that a friendly receiver need not be cut off. */
const READ_BYTES = 64 * 1024

/** How many interim answers (1xx) a receiver may send. */
const INTERIM_ANSWERS = 8

/**
 * Posts to an address that was checked, on a connection of its own to one of the IP addresses that were. Redirects are not
 * followed. The status counts as soon as it is there, however the rest of the answer goes.
 */
export function post({ url, addresses }: CheckedAddress, { headers, body }: WebhookPost, signal: AbortSignal): Promise<WebhookAnswer> {
  return new Promise(resolve => {
    const options = {
      method: 'POST', agent: false, lookup: pinned(addresses), signal,
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

/** Has a connection use the addresses that were checked, whatever the name means by now. */
function pinned(addresses: readonly string[]): LookupFunction {
  const found = addresses.map(address => ({ address, family: isIP(address) }))
  return (_host, { all }, callback) => {
    const { address, family } = found[0] as LookupAddress
    if (all) callback(null, found)
    /* c8 ignore next -- Node asks for all addresses of a name, unless the program has turned that off */
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

/** Reads an answer, and tells when that is enough. */
function drain(response: IncomingMessage, enough: () => void): void {
  let bytes = 0
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > READ_BYTES) enough()
  })
  // What goes wrong from here on changes nothing.
  response.on('error', () => {})
}

/** What went wrong, in words that tell nothing of what was sent. */
function failureOf(error: Error & { readonly code?: unknown }): string {
  return typeof error.code === 'string' ? `no connection (${error.code})` : 'no connection'
}
