import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type WebSocket, WebSocketServer } from 'ws'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { escapeMarkup } from '../drawing/svg-element.ts'
import { isLoopback, originRefusal, type RefusedRequest, type RequestTarget, targetOf } from '../entry/admission.ts'
import { jsonAnswer, LightResponse } from '../entry/answers.ts'
import type { HttpRequest, Tap } from '../entry/connection.ts'
import { FULL, serverUrlOf } from '../entry/listen.ts'
import { acceptUpgrades } from '../entry/upgrade-paths.ts'
import type { PortExtension } from '../serve/port-extension.ts'
import { CLOSE_CODES } from '../websocket/close-codes.ts'
import { refuse } from '../websocket/handshake.ts'
import { startHeartbeat } from '../websocket/heartbeat.ts'
import { atHost, Hub, type HubOptions } from './hub.ts'
import {
  linkTo,
  type Stately,
  STATELY_ORIGIN,
  statelyPage,
  statelyScript,
  StatelySink,
  WAITING_BYTES
} from './stately.ts'

/** The path of the page's files. */
const PAGE_PATH = '/inspector/'

/** A name below it: no `..`, nothing hidden. */
const NAME = /^\/inspector\/((?:\w[\w-]*\/)*\w[\w.-]*)$/

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2'
}

/** The built page: `index.html`, and the files that it loads. */
export class PageFiles {
  readonly #folder: string

  constructor(folder: URL) {
    this.#folder = fileURLToPath(folder)
  }

  /** The page with its settings as `meta` tags; `undefined` if it was not built. */
  async index(host: string, meta: Readonly<Record<string, string>>): Promise<Response | undefined> {
    const html = await this.#read('index.html')
    const tags = Object.entries(meta).map(
      ([name, content]) => `<meta name="${name}" content="${escapeMarkup(content)}">`
    )
    return (
      html &&
      htmlAnswer(
        html.toString('utf8').replace(/<head[^>]*>/, head => `${head}${tags.join('')}`),
        host
      )
    )
  }

  /** A file of the page; `undefined` for an unknown name. Files with a hash in their names never change. */
  async file(pathname: string): Promise<Response | undefined> {
    const [, name] = NAME.exec(pathname) ?? []
    const type = TYPES[extname(pathname)]
    const bytes = name !== undefined && type !== undefined ? await this.#read(name) : undefined
    if (!bytes || !type || !name) return undefined
    const caching = name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-cache'
    return new LightResponse(bytes, { headers: { ...SAFE, 'Content-Type': type, 'Cache-Control': caching } })
  }

  #read(name: string): Promise<Buffer<ArrayBuffer> | undefined> {
    return readFile(`${this.#folder}${name}`).catch(() => undefined)
  }
}

/** An HTML page whose policy allows resources of its own origin only, and frames of the given origins. */
export function htmlAnswer(html: string, host: string, frames: readonly string[] = []): Response {
  const sockets = /^[\w.:[\]-]+$/.test(host) ? ` ws://${host} wss://${host}` : ''
  const policy = [
    "default-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    `connect-src 'self'${sockets}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    ...(frames.length > 0 ? [`frame-src ${frames.join(' ')}`] : [])
  ]
  return new LightResponse(html, {
    headers: {
      ...SAFE,
      'Content-Type': 'text/html; charset=utf-8',
      'Cache-Control': 'no-store',
      'Content-Security-Policy': policy.join('; ')
    }
  })
}

const SAFE = {
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin'
}

const FEED_PATH = `${PAGE_PATH}feed`

const STATELY_PATH = `${PAGE_PATH}stately`

/** `?token=TOKEN&task=ID`: the story of a task, as a file to save. */
const STORY_PATH = `${PAGE_PATH}story`

/** `?token=TOKEN&task=ID`: a task as a recorded example, as a file to save beside the module of the agent. */
const EXAMPLE_PATH = `${PAGE_PATH}example`

/** The maximum number of pages and receivers. */
const MOST_VIEWERS = 32

/** The maximum size of a page's message. */
const MOST_BYTES = 64 * 1024

/** The parts of an inspector. */
export interface InspectorParts extends HubOptions {
  readonly page: PageFiles
  readonly loadStately: () => Promise<Stately>
  /** The URL of a receiver of Stately's inspection. */
  readonly stately?: string | undefined
  /** The token for access. Default a random one. */
  readonly token?: string | undefined
}

/** The state while it is served. */
interface Open {
  readonly server: Server
  readonly hub: Hub
  runtime: ServedRuntime
  url: string
}

/** An inspector on a server: its page, the sockets of pages and of Stately's inspector, and access control. */
export class Inspector implements PortExtension {
  readonly tap: Tap = { onFrame: undefined }
  readonly token: string
  readonly #parts: InspectorParts
  #open: Open | undefined

  constructor(parts: InspectorParts) {
    this.#parts = parts
    this.token = parts.token ?? randomBytes(16).toString('base64url')
  }

  /** The URL of the page for people, with the token if it is required. */
  get pageUrl(): string {
    const { server, runtime } = this.#served
    return `${serverUrlOf(server, '/')}${isOpen(server, runtime) ? '' : `?token=${this.token}`}`
  }

  answer(request: HttpRequest): Promise<Response | undefined> | undefined {
    if (request.method !== 'GET' && request.method !== 'HEAD') return undefined
    const { pathname } = new URL(request.url)
    if (pathname === '/' || pathname === '/stately') return this.#page(request, pathname)
    if (!pathname.startsWith(PAGE_PATH)) return undefined
    if (pathname === STORY_PATH || pathname === EXAMPLE_PATH) return this.#file(request, pathname === EXAMPLE_PATH)
    if (pathname === `${PAGE_PATH}stately.js`) return Promise.resolve(scriptAnswer(statelyScript))
    return this.#parts.page.file(pathname)
  }

  async open(server: Server, runtime: ServedRuntime, url: string): Promise<() => Promise<void>> {
    const { stately: receiver, loadStately, redact } = this.#parts
    const {
      settings: { clock, logger }
    } = runtime
    const stately = receiver === undefined ? undefined : await loadStately()
    const hub = new Hub(runtime, url, this.#parts, this.tap)
    this.#open = { server, hub, runtime, url }
    const sockets = new WebSocketServer({ noServer: true, maxPayload: MOST_BYTES })
    const releases = [
      acceptUpgrades(server, { path: FEED_PATH }, (request, socket, head) =>
        this.#enter(sockets, request, socket, head, (client, host) => hub.page(client, socket, host))
      ),
      acceptUpgrades(server, { path: STATELY_PATH }, (request, socket, head) =>
        this.#enter(sockets, request, socket, head, client => void this.#feed(client))
      ),
      startHeartbeat(sockets.clients, clock),
      stately && receiver !== undefined ? linkTo(receiver, hub, { stately, redact, logger }) : () => {}
    ]
    return async () => {
      for (const release of releases) release()
      for (const client of sockets.clients) client.close(CLOSE_CODES.restart, 'The server restarts. Connect again.')
      hub.close()
    }
  }

  /** Switches to another runtime, whose agent replaces the previous one. */
  use(runtime: ServedRuntime, url: string): void {
    const open = this.#served
    Object.assign(open, { runtime, url })
    open.hub.use(runtime, url)
  }

  /** Shows the pages why the agent could not be reloaded. */
  showReloadError(trouble: string): void {
    this.#served.hub.showReloadError(trouble)
  }

  /** Shows the pages the error with which the author's code of a task ended. Does nothing before it is served. */
  crashed(taskId: string, error: string): void {
    this.#open?.hub.crashed(taskId, error)
  }

  /** Sends the coverage of a test to the pages. */
  cover(): Promise<void> {
    return this.#served.hub.cover()
  }

  get #served(): Open {
    if (!this.#open) throw new TypeError('The inspector is not served yet. Give it to serve(runtime, { inspector }).')
    return this.#open
  }

  async #page(request: HttpRequest, pathname: '/' | '/stately'): Promise<Response | undefined> {
    const { server, runtime, url } = this.#served
    const { host, searchParams } = new URL(request.url)
    if (!isOpen(server, runtime) && !hasToken(request.url, this.token)) {
      // Without the token, the public page of the agent is shown.
      const isTried = pathname === '/stately' || searchParams.has('token')
      return isTried
        ? jsonAnswer(
            JSON.stringify({ error: 'This page requires its token: use the URL that the server printed.' }),
            {},
            401
          )
        : undefined
    }
    if (pathname === '/stately') return htmlAnswer(statelyPage.replace('TOKEN', this.token), host, [STATELY_ORIGIN])
    return this.#parts.page.index(host, { 'taskchart-token': this.token, 'taskchart-agent': atHost(url, host) })
  }

  async #file(request: HttpRequest, isExample: boolean): Promise<Response> {
    if (!hasToken(request.url, this.token))
      return jsonAnswer(JSON.stringify({ error: 'The inspector requires its token. Reload the page.' }), {}, 401)
    const taskId = new URL(request.url).searchParams.get('task') ?? ''
    const { hub } = this.#served
    const file = await (isExample ? hub.example(taskId) : hub.story(taskId))
    if (file === undefined)
      return jsonAnswer(JSON.stringify({ error: `There is no task ${JSON.stringify(taskId)}.` }), {}, 404)
    // A file to save: shown here, it would be a page of this origin.
    const name = isExample ? 'agent.example.json' : `task-${taskId.replaceAll(/[^\w-]/g, '')}.html`
    return new LightResponse(file, {
      headers: {
        'Content-Type': isExample ? 'application/json' : 'text/html; charset=utf-8',
        'Content-Disposition': `attachment; filename="${name}"`,
        'X-Content-Type-Options': 'nosniff'
      }
    })
  }

  #enter(
    sockets: WebSocketServer,
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
    enter: (client: WebSocket, host: string) => void
  ): void {
    const { runtime, hub } = this.#served
    const target = socketTarget(request, runtime, this.token)
    if ('status' in target) return refuse(socket, target)
    if (hub.viewers >= MOST_VIEWERS) return refuse(socket, FULL)
    sockets.handleUpgrade(request, socket, head, client => {
      // A violation of RFC 6455: ws closes the connection itself, with the right code.
      client.on('error', () => {})
      enter(client, target.host)
    })
  }

  /**
   * Sends events to Stately's inspector, in its page or another receiver. A receiver that is too slow is disconnected.
   */
  async #feed(client: WebSocket): Promise<void> {
    const { loadStately, redact } = this.#parts
    try {
      const stately = await loadStately()
      const release = this.#served.hub.sink(
        new StatelySink(stately, redact, text => {
          if (client.bufferedAmount > WAITING_BYTES) client.terminate()
          else if (client.readyState === client.OPEN) client.send(text)
        })
      )
      client.on('close', release)
    } catch (error) {
      client.close(CLOSE_CODES.policy, (error as Error).message.slice(0, 120))
    }
  }
}

function scriptAnswer(text: string): Response {
  return new LightResponse(text, {
    headers: {
      'Content-Type': 'text/javascript; charset=utf-8',
      'Cache-Control': 'no-cache',
      'X-Content-Type-Options': 'nosniff'
    }
  })
}

/** Whether the inspector needs no token: on a loopback address, for an agent without `authenticate`. */
function isOpen(server: Server, { settings }: ServedRuntime): boolean {
  return isLoopback((server.address() as AddressInfo).address) && !settings.authenticate
}

/** Whether a request's URL contains the token. */
function hasToken(address: string | undefined, token: string): boolean {
  const given = new URL(String(address), 'http://localhost').searchParams.get('token') ?? ''
  return timingSafeEqual(digest(given), digest(token))
}

/** The target of a handshake, or its refusal: by the Host rule, for a wrong token, or for a page of another origin. */
function socketTarget(
  request: IncomingMessage,
  { settings }: ServedRuntime,
  token: string
): RequestTarget | RefusedRequest {
  const target = targetOf(request, settings)
  if ('status' in target) return target
  if (!hasToken(request.url, token))
    return { status: 401, message: 'The inspector requires its token. Reload the page.' }
  // Its own pages have the token, so that any name will do.
  if (!originRefusal(request.headers.origin, target.host, { ownPages: 'any' })) return target
  return { status: 403, message: 'Pages of other origins may not use the inspector.' }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** The built page. */
export const builtPage = new PageFiles(new URL('./page/', import.meta.url))
