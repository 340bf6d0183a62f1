import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { UNCOUNTED_BYTES } from '../../runtime/access/shares.ts'
import { onReceived } from '../../runtime/primitives/event-loop.ts'
import type { DirectResponse, Handler, HttpRequest } from './connection.ts'

// Hono's RESPONSE_ALREADY_SENT would be sent again if it is a light Response. Reading its body makes it an ordinary
// one.
void RESPONSE_ALREADY_SENT.body

export { RESPONSE_ALREADY_SENT }

const NOTHING = Buffer.alloc(0)

/** The last URL that was looked at, which is that of most requests: comparing its parts makes no text. */
let last: { readonly host: string; readonly target: string; readonly url: string | undefined } | undefined

/** The URL of a request if parsing does not change it; else undefined. */
function plainUrl(host: string, target: string): string | undefined {
  if (last?.host === host && last.target === target) return last.url
  const text = `http://${host}${target}`
  last = { host, target, url: URL.canParse(text) && new URL(text).href === text ? text : undefined }
  return last.url
}

/**
 * A POST request with a small body, such as nearly every call of A2A, without a Request of Hono. It is read from Node's
 * request.
 */
class SmallRequest implements HttpRequest {
  readonly method = 'POST'
  readonly headers: HttpRequest['headers']
  readonly url: string
  readonly #length: number
  readonly #incoming: IncomingMessage

  constructor(url: string, length: number, incoming: IncomingMessage) {
    this.url = url
    this.#length = length
    this.headers = new NodeHeaders(incoming.headers)
    this.#incoming = incoming
  }

  takeArrived(): Uint8Array | undefined {
    return this.#incoming.readableLength === this.#length
      ? ((this.#incoming.read() as Buffer | null) ?? NOTHING)
      : undefined
  }

  /** The body. Throws Error if the client disconnects before its end. */
  arrayBuffer(): Promise<Uint8Array> {
    const arrived = this.takeArrived()
    if (arrived) return Promise.resolve(arrived)
    const chunks: Buffer[] = []
    const incoming = this.#incoming
    return new Promise((resolve, reject) => {
      if (incoming.destroyed) throw new Error('The client has disconnected.')
      onReceived(incoming, 'data', (chunk: Buffer) => void chunks.push(chunk))
      incoming.on('end', () => resolve(Buffer.concat(chunks)))
      incoming.on('close', () => incoming.complete || reject(new Error('The client has disconnected.')))
    })
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

/**
 * A request as a small one; undefined if it is another, if a header is given twice, or if its URL is not normalised.
 */
function smallRequest(incoming: IncomingMessage): SmallRequest | undefined {
  const { headers, rawHeaders, method, url } = incoming
  const length = headers['content-length']
  if (method !== 'POST' || length === undefined || Number(length) > UNCOUNTED_BYTES) return undefined
  let names = 0
  for (const name in headers) if (name !== 'set-cookie') names += 1
  if (names * 2 !== rawHeaders.length) return undefined
  const known = plainUrl(headers.host as string, url as string)
  return known === undefined ? undefined : new SmallRequest(known, Number(length), incoming)
}

/** Answers a request to a Node server. */
export type NodeListener = (incoming: IncomingMessage, outgoing: ServerResponse, direct: DirectResponse) => void

/**
 * A listener for a handler. Small requests reach it without Hono, with which a task of SendMessage allocates 6 kB more
 * (Node 24; `npm run bench -- --only send` measures it). Their errors, and all other requests, pass through Hono.
 */
export function listenerOf(handler: Handler): NodeListener {
  return (incoming, outgoing, direct) => {
    const pass = (answered: (request: HttpRequest) => Promise<Response>) =>
      void getRequestListener(answered, { overrideGlobalObjects: false })(incoming, outgoing)
    const request = smallRequest(incoming)
    if (!request) {
      pass(request => handler(request, { direct }))
      return
    }
    const answer = handler(request, { direct })
    const passUnsent = (response: unknown) => void (response === RESPONSE_ALREADY_SENT || pass(() => answer))
    answer.then(passUnsent, passUnsent)
  }
}

/** Sends an answer of JSON text to Node's response, without a Response in between. */
export function sendJson(
  { response }: DirectResponse,
  text: string,
  headers: Readonly<Record<string, string>>
): Response {
  response
    .writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text), ...headers })
    .end(text)
  return RESPONSE_ALREADY_SENT
}
