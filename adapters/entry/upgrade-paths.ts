import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { pathOf } from './admission.ts'

/** Node 24.9 and later ask this before they hand over a connection with `upgrade`. */
interface AskingServer {
  shouldUpgradeCallback?: (request: IncomingMessage) => boolean
}

/** True for a request that asks for a WebSocket and nothing else. */
export function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket'
}

/** Has Node 24.9 and later treat requests for other upgrades as ordinary ones (RFC 9110 §7.8), unless `isWanted` says that the app may take them. */
export function ignoreOthers(server: Server & AskingServer, isWanted: () => boolean): void {
  const { shouldUpgradeCallback: asked } = server
  if (asked) server.shouldUpgradeCallback = request => (isWebSocket(request) || isWanted()) && asked.call(server, request)
}

/** A connection as Node has it: with the response that is being written on it. */
interface AnsweringSocket extends Socket {
  readonly _httpMessage?: ServerResponse | null
}

/**
 * Gives a request back to a server without its upgrade, for versions of Node that hand over every connection with one. The body has
 * not been read: its beginning is `head`, the rest is still to come. Waits for responses to requests before it on the connection.
 */
export function replay(server: Server, request: IncomingMessage, socket: AnsweringSocket, head: Buffer): void {
  const { _httpMessage: earlier } = socket
  if (earlier) return void earlier.once('close', () => replay(server, request, socket, head))
  const lines = [`${request.method} ${request.url} HTTP/${request.httpVersion}`]
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    const [name = '', value = ''] = request.rawHeaders.slice(i, i + 2)
    if (/^upgrade$/i.test(name)) continue
    lines.push(`${name}: ${/^connection$/i.test(name) ? withoutUpgrade(value) : value}`)
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]))
  server.emit('connection', socket)
}

function withoutUpgrade(connection: string): string {
  return connection.split(',').filter(token => token.trim().toLowerCase() !== 'upgrade').join(',')
}

/** Takes an upgrade of a connection that asks for one. */
export type TakeUpgrade = (request: IncomingMessage, socket: Socket, head: Buffer) => void

/** Where one of ours takes upgrades on a server: at a path, and at others that nobody else has. */
export interface Place {
  readonly path: string
  readonly takesBelow?: ((path: string) => boolean) | undefined
}

/** The places of ours on each server. */
const PLACES = new WeakMap<Server, readonly Place[]>()

/**
 * Takes the WebSockets of a place on a server that listens. `unknown` gets those that neither one of ours on this server nor the
 * app itself may want. Requests for other upgrades are answered as if they asked for none, unless the app listens for upgrades too.
 * The answer gives the place back.
 */
export function takePath(server: Server, place: Place, take: TakeUpgrade, unknown: TakeUpgrade = () => {}): () => void {
  const onUpgrade = (request: IncomingMessage, socket: Socket, head: Buffer) => {
    if (!isWebSocket(request)) return placesOn(server)[0] === place && !isForApp(server) ? replay(server, request, socket, head) : undefined
    socket.on('error', () => socket.destroy())
    const asked = pathOf(request)
    if (asked === place.path) return take(request, socket, head)
    const others = placesOn(server).filter(other => other !== place)
    if (!isNobodys(server, others, asked)) return undefined
    if (place.takesBelow?.(asked)) return take(request, socket, head)
    return socket.writableEnded ? undefined : unknown(request, socket, head)
  }
  if (!PLACES.has(server)) ignoreOthers(server, () => isForApp(server))
  server.on('upgrade', onUpgrade)
  PLACES.set(server, [...placesOn(server), place])
  return () => {
    server.off('upgrade', onUpgrade)
    PLACES.set(server, placesOn(server).filter(other => other !== place))
  }
}

function placesOn(server: Server): readonly Place[] {
  return PLACES.get(server) ?? []
}

/** True when the app may want an upgrade: it listens for them too. */
function isForApp(server: Server): boolean {
  return server.listenerCount('upgrade') > placesOn(server).length
}

/** True when neither another of ours on this server nor the app itself may want an upgrade of this path. */
function isNobodys(server: Server, others: readonly Place[], asked: string): boolean {
  return !isForApp(server) && !others.some(other => other.path === asked || other.takesBelow?.(asked))
}
