import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { UNCOUNTED_BYTES } from '../../runtime/access/unfinished-bytes.ts'
import { memoizeLast } from '../../runtime/primitives/collections.ts'
import type { DirectResponse, Handler, HttpRequest } from './connection.ts'

// Hono's RESPONSE_ALREADY_SENT would be sent again if it is a light Response. Reading its body makes it an ordinary one.
void RESPONSE_ALREADY_SENT.body

export { RESPONSE_ALREADY_SENT }

/** A text if it is a URL that parsing does not change; else undefined. */
const plainUrl = memoizeLast(text => (URL.canParse(text) && new URL(text).href === text ? text : undefined))

/**
 * A POST request with a small body, such as nearly every call of A2A, without a Request of Hono. It is read from Node's request, and its
 * whole body from the start.
 */
class SmallRequest implements HttpRequest {
  readonly method = 'POST'
  readonly headers: HttpRequest['headers']
  readonly url: string
  readonly #chunks: Buffer[] = []
  #state: 'arriving' | 'complete' | 'broken' = 'arriving'
  #settle: () => void = nothing

  constructor(url: string, incoming: IncomingMessage) {
    this.url = url
    this.headers = new NodeHeaders(incoming.headers)
    incoming.on('data', (chunk: Buffer) => void this.#chunks.push(chunk))
    incoming.on('end', () => this.#end('complete'))
    incoming.on('close', () => this.#end('broken'))
  }

  /** The body. Throws Error if the client disconnects before its end. */
  arrayBuffer(): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#settle = () => (this.#state === 'complete' ? resolve(this.#whole) : reject(new Error('The client has disconnected.')))
      if (this.#state !== 'arriving') this.#settle()
    })
  }

  get #whole(): Uint8Array {
    const [first] = this.#chunks
    return first && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks)
  }

  #end(state: 'complete' | 'broken'): void {
    if (this.#state !== 'arriving') return
    this.#state = state
    this.#settle()
  }
}

/** Node's headers in the form of Fetch, none of which is given twice. */
class NodeHeaders {
  readonly #headers: IncomingMessage['headers']

  constructor(headers: IncomingMessage['headers']) {
    this.#headers = headers
  }

  get(name: string): string | null {
    const value = this.#headers[name.toLowerCase()]
    return typeof value === 'string' ? value : null
  }

  has(name: string): boolean {
    return this.get(name) !== null
  }

  [Symbol.iterator](): Iterator<[string, string]> {
    return (Object.entries(this.#headers) as [string, string][])[Symbol.iterator]()
  }
}

/** A request as a small one; undefined if it is another, if a header is given twice, or if its URL is not normalised. */
function smallRequest(incoming: IncomingMessage): SmallRequest | undefined {
  const { headers, rawHeaders, method, url } = incoming
  const length = headers['content-length']
  if (method !== 'POST' || length === undefined || Number(length) > UNCOUNTED_BYTES) return undefined
  if (Object.keys(headers).length * 2 !== rawHeaders.length || headers['set-cookie']) return undefined
  const known = plainUrl(`http://${headers.host}${url}`)
  return known === undefined ? undefined : new SmallRequest(known, incoming)
}

/**
 * A listener for a handler. Small requests reach it without Hono, with which a task of SendMessage allocates 71 kB in place of 65 (Node
 * 24; `npm run bench -- --only send` measures it). Their errors, and all other requests, pass through Hono.
 */
export function listenerOf(handler: Handler, directOf: (incoming: IncomingMessage, outgoing: ServerResponse) => DirectResponse): (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void> {
  const listener = getRequestListener((request, { incoming, outgoing }) => handler(request, { direct: directOf(incoming as IncomingMessage, outgoing as ServerResponse) }), { overrideGlobalObjects: false })
  return async (incoming, outgoing) => {
    const request = smallRequest(incoming)
    if (!request) return listener(incoming, outgoing)
    const answer = handler(request, { direct: directOf(incoming, outgoing) })
    if ((await answer.catch(nothing)) !== RESPONSE_ALREADY_SENT) await getRequestListener(() => answer, { overrideGlobalObjects: false })(incoming, outgoing)
  }
}

/** Sends an answer of JSON text to Node's response, without a Response in between. */
export function sendJson({ response }: DirectResponse, text: string, headers: Readonly<Record<string, string>>): Response {
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text), ...headers }).end(text)
  return RESPONSE_ALREADY_SENT
}

function nothing(): void {}
