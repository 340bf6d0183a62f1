import { randomBytes } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { WebSocketServer, type WebSocket } from 'ws'
import type { Runtime } from '../../runtime/runtime.ts'
import { jsonAnswer, LightResponse } from '../entry/answers.ts'
import type { Tap } from '../entry/frame-tap.ts'
import { addressOf, FULL } from '../entry/listen.ts'
import { takePath } from '../entry/upgrade-paths.ts'
import type { SideApp } from '../serve/side-app.ts'
import { CLOSE_CODES } from '../websocket/close-codes.ts'
import { refuse } from '../websocket/handshake.ts'
import { startHeartbeat } from '../websocket/heartbeat.ts'
import { atHost } from './at-host.ts'
import { hasToken, isOpen, socketTarget } from './entry.ts'
import { Hub, type HubOptions } from './hub.ts'
import { htmlAnswer, PAGE_PATH, type PageFiles } from './page-files.ts'
import { linkTo, WAITING_BYTES } from './stately/stately-link.ts'
import { STATELY_ORIGIN, statelyPage, statelyScript } from './stately/stately-page.ts'
import { StatelySink, type Stately } from './stately/stately-sink.ts'

const FEED_PATH = `${PAGE_PATH}feed`
const STATELY_PATH = `${PAGE_PATH}stately`

/** Pages and receivers at a time. */
const MOST_LOOKERS = 32

/** What a page may say at once: little. */
const MOST_BYTES = 64 * 1024

/** What an inspector is made with. */
export interface InspectorParts extends HubOptions {
  readonly page: PageFiles
  readonly loadStately: () => Promise<Stately>
  /** The address of a receiver of Stately's. */
  readonly stately?: string | undefined
  /** What lets in. Default a random one. */
  readonly token?: string | undefined
}

/** What there is while it is served. */
interface Open {
  readonly server: Server
  readonly hub: Hub
  runtime: Runtime
  url: string
}

/** The hub on a server: its page, the sockets of pages and of Stately's inspector, and who may come in. */
export class Inspector implements SideApp {
  readonly tap: Tap = { heard: undefined }
  readonly token: string
  readonly #parts: InspectorParts
  #open: Open | undefined

  constructor(parts: InspectorParts) {
    this.#parts = parts
    this.token = parts.token ?? randomBytes(16).toString('base64url')
  }

  /** The address of the page for people, with the token if it takes one. */
  get pageUrl(): string {
    const { server, runtime } = this.#served
    return `${addressOf(server, '/')}${isOpen(server, runtime) ? '' : `?token=${this.token}`}`
  }

  answer(request: Request): Promise<Response | undefined> | undefined {
    if (request.method !== 'GET' && request.method !== 'HEAD') return undefined
    const { pathname } = new URL(request.url)
    if (pathname === '/' || pathname === '/stately') return this.#page(request, pathname)
    if (!pathname.startsWith(PAGE_PATH)) return undefined
    if (pathname === `${PAGE_PATH}stately.js`) return Promise.resolve(scriptAnswer(statelyScript))
    return this.#parts.page.file(pathname)
  }

  async open(server: Server, runtime: Runtime, url: string): Promise<() => Promise<void>> {
    const { stately: receiver, loadStately, redact } = this.#parts
    const { settings: { clock, logger } } = runtime
    const stately = receiver === undefined ? undefined : await loadStately()
    const hub = new Hub(runtime, url, this.#parts, this.tap)
    this.#open = { server, hub, runtime, url }
    const sockets = new WebSocketServer({ noServer: true, maxPayload: MOST_BYTES })
    const releases = [
      takePath(server, { path: FEED_PATH }, (request, socket, head) => this.#enter(sockets, request, socket, head, (client, host) => hub.page(client, socket, host))),
      takePath(server, { path: STATELY_PATH }, (request, socket, head) => this.#enter(sockets, request, socket, head, client => void this.#feed(client))),
      startHeartbeat(sockets.clients, clock),
      stately && receiver !== undefined ? linkTo(receiver, hub, { stately, redact, logger }) : () => {}
    ]
    return async () => {
      for (const release of releases) release()
      for (const client of sockets.clients) client.close(CLOSE_CODES.restart, 'The server restarts. Connect again.')
      hub.close()
    }
  }

  /** Looks at another runtime from now on, whose agent is served in the place of the one before. */
  use(runtime: Runtime, url: string): void {
    const open = this.#served
    Object.assign(open, { runtime, url })
    open.hub.use(runtime, url)
  }

  /** Tells the pages why the agent could not be loaded again. */
  tell(trouble: string): void {
    this.#served.hub.tell(trouble)
  }

  /** Tells the pages what a test of the agent has reached. */
  cover(): Promise<void> {
    return this.#served.hub.cover()
  }

  get #served(): Open {
    if (!this.#open) throw new TypeError('The inspector is not served yet. Give it to serve(runtime, { inspector }).')
    return this.#open
  }

  async #page(request: Request, pathname: '/' | '/stately'): Promise<Response | undefined> {
    const { server, runtime, url } = this.#served
    const { host, searchParams } = new URL(request.url)
    if (!isOpen(server, runtime) && !hasToken(request.url, this.token)) {
      // Who has no token sees the page that every agent has.
      const isTried = pathname === '/stately' || searchParams.has('token')
      return isTried ? jsonAnswer(JSON.stringify({ error: 'This page is for who has its token: use the address that the server printed.' }), {}, 401) : undefined
    }
    if (pathname === '/stately') return htmlAnswer(statelyPage.replace('TOKEN', this.token), host, [STATELY_ORIGIN])
    return this.#parts.page.index(host, { 'taskchart-token': this.token, 'taskchart-agent': atHost(url, host) })
  }

  #enter(sockets: WebSocketServer, request: IncomingMessage, socket: Socket, head: Buffer, enter: (client: WebSocket, host: string) => void): void {
    const { runtime, hub } = this.#served
    const target = socketTarget(request, runtime, this.token)
    if ('status' in target) return refuse(socket, target)
    if (hub.lookers >= MOST_LOOKERS) return refuse(socket, FULL)
    sockets.handleUpgrade(request, socket, head, client => {
      // A frame that breaks RFC 6455: ws closes the connection itself, with the code for it.
      client.on('error', () => {})
      enter(client, target.host)
    })
  }

  /** Feeds Stately's inspector, behind its page or another receiver of its wire. One that is too slow has to come again. */
  async #feed(client: WebSocket): Promise<void> {
    const { loadStately, redact } = this.#parts
    try {
      const stately = await loadStately()
      const release = this.#served.hub.sink(new StatelySink(stately, redact, text => {
        if (client.bufferedAmount > WAITING_BYTES) client.terminate()
        else if (client.readyState === client.OPEN) client.send(text)
      }))
      client.on('close', release)
    } catch (error) {
      client.close(CLOSE_CODES.policy, (error as Error).message.slice(0, 120))
    }
  }
}

function scriptAnswer(text: string): Response {
  return new LightResponse(text, { headers: { 'Content-Type': 'text/javascript; charset=utf-8', 'Cache-Control': 'no-cache', 'X-Content-Type-Options': 'nosniff' } })
}
