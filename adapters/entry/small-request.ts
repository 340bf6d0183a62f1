import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { UNCOUNTED_BYTES } from '../../runtime/access/unfinished-bytes.ts'
import type { DirectResponse, Handler, HttpRequest } from './connection.ts'

// Hono's RESPONSE_ALREADY_SENT would be sent again if it is a light Response. Reading its body makes it an ordinary one.
void RESPONSE_ALREADY_SENT.body

export { RESPONSE_ALREADY_SENT }

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
 * A POST request with a small body, such as nearly every call of A2A, without a Request of Hono. It is read from Node's request, and its
 * whole body from the start.
 */
class SmallRequest implements HttpRequest {
  readonly method = 'POST'
  readonly headers: HttpRequest['headers']
  readonly url: string
  #first: Buffer | undefined
  #more: Buffer[] | undefined
  #state: 'arriving' | 'complete' | 'broken' = 'arriving'
  #settle: () => void = nothing

  constructor(url: string, incoming: IncomingMessage) {
    this.url = url
    this.headers = new NodeHeaders(incoming.headers)
    incoming.on('data', (chunk: Buffer) => this.#add(chunk))
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
    return this.#first && !this.#more ? this.#first : Buffer.concat(this.#more ?? [])
  }

  /** Nearly every body arrives at once: then it needs no list. */
  #add(chunk: Buffer): void {
    if (this.#more) this.#more.push(chunk)
    else if (this.#first) this.#more = [this.#first, chunk]
    else this.#first = chunk
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
  let names = 0
  for (const name in headers) if (name !== 'set-cookie') names += 1
  if (names * 2 !== rawHeaders.length) return undefined
  const known = plainUrl(headers.host as string, url as string)
  return known === undefined ? undefined : new SmallRequest(known, incoming)
}

/**
 * A listener for a handler. Small requests reach it without Hono, with which a task of SendMessage allocates 6 kB more (Node
 * 24; `npm run bench -- --only send` measures it). Their errors, and all other requests, pass through Hono.
 */
export function listenerOf(handler: Handler, directOf: (incoming: IncomingMessage, outgoing: ServerResponse) => DirectResponse): (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  const listener = getRequestListener((request, { incoming, outgoing }) => handler(request, { direct: directOf(incoming as IncomingMessage, outgoing as ServerResponse) }), { overrideGlobalObjects: false })
  return (incoming, outgoing) => {
    const request = smallRequest(incoming)
    if (!request) {
      void listener(incoming, outgoing)
      return
    }
    const answer = handler(request, { direct: directOf(incoming, outgoing) })
    const pass = () => void getRequestListener(() => answer, { overrideGlobalObjects: false })(incoming, outgoing)
    answer.then(response => void (response === RESPONSE_ALREADY_SENT || pass()), pass)
  }
}

/** Sends an answer of JSON text to Node's response, without a Response in between. */
export function sendJson({ response }: DirectResponse, text: string, headers: Readonly<Record<string, string>>): Response {
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text), ...headers }).end(text)
  return RESPONSE_ALREADY_SENT
}

function nothing(): void {}
