import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { requestPathOf } from './admission.ts'
import { basePath } from './listen.ts'

/** Node 24.9 and later call this before they emit `upgrade`. */
interface UpgradingServer {
  shouldUpgradeCallback?: (request: IncomingMessage) => boolean
}

/** Whether a request requests a WebSocket and no other upgrade. */
export function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket'
}

/** Makes Node 24.9 and later ignore other upgrades (RFC 9110 §7.8), unless the app may accept them, by `isWanted`. */
export function ignoreOthers(server: Server & UpgradingServer, isWanted: () => boolean): void {
  const { shouldUpgradeCallback: decide } = server
  if (decide)
    server.shouldUpgradeCallback = request => (isWebSocket(request) || isWanted()) && decide.call(server, request)
}

/** A socket with Node's private reference to the response that is being written. */
interface AnsweringSocket extends Socket {
  readonly _httpMessage?: ServerResponse | null
}

/**
 * Passes a request back to its server without its upgrade, for versions of Node that emit `upgrade` for every one. The
 * body is unread: it begins with `head`. Waits for earlier responses on the connection.
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
  return connection
    .split(',')
    .filter(token => token.trim().toLowerCase() !== 'upgrade')
    .join(',')
}

/** Handles the upgrade of a connection. */
export type UpgradeHandler = (request: IncomingMessage, socket: Socket, head: Buffer) => void

/** The paths of a server on which taskchart accepts upgrades: one path, and others that nothing else claims. */
export interface UpgradePaths {
  readonly path: string
  readonly acceptsBelow?: ((path: string) => boolean) | undefined
}

/** The places on each server. */
const PLACES = new WeakMap<Server, readonly UpgradePaths[]>()

/**
 * Accepts WebSockets at a place of a listening server. `unknown` gets those that neither another place nor the app may
 * want. Requests for other upgrades are answered without an upgrade, unless the app listens for upgrades too. Returns
 * the function that releases the place.
 */
export function acceptUpgrades(
  server: Server,
  place: UpgradePaths,
  accept: UpgradeHandler,
  unknown: UpgradeHandler = () => {}
): () => void {
  const onUpgrade = (request: IncomingMessage, socket: Socket, head: Buffer) => {
    if (!isWebSocket(request))
      return placesOn(server)[0] === place && !isForApp(server) ? replay(server, request, socket, head) : undefined
    socket.on('error', () => socket.destroy())
    const requestPath = requestPathOf(request)
    if (isAt(place, requestPath)) return accept(request, socket, head)
    const others = placesOn(server).filter(other => other !== place)
    if (!isUnclaimed(server, others, requestPath)) return undefined
    if (place.acceptsBelow?.(requestPath)) return accept(request, socket, head)
    return socket.writableEnded ? undefined : unknown(request, socket, head)
  }
  if (!PLACES.has(server)) ignoreOthers(server, () => isForApp(server))
  server.on('upgrade', onUpgrade)
  PLACES.set(server, [...placesOn(server), place])
  return () => {
    server.off('upgrade', onUpgrade)
    PLACES.set(
      server,
      placesOn(server).filter(other => other !== place)
    )
  }
}

function placesOn(server: Server): readonly UpgradePaths[] {
  return PLACES.get(server) ?? []
}

/** Whether a path is that of a place, with or without a slash at its end. */
function isAt({ path }: UpgradePaths, requestPath: string): boolean {
  const base = basePath(path)
  return requestPath === base || requestPath === `${base}/`
}

/** Whether the app may want an upgrade: it listens for them too. */
function isForApp(server: Server): boolean {
  return server.listenerCount('upgrade') > placesOn(server).length
}

/** Whether neither another place nor the app may want an upgrade of this path. */
function isUnclaimed(server: Server, others: readonly UpgradePaths[], requestPath: string): boolean {
  return !isForApp(server) && !others.some(other => isAt(other, requestPath) || other.acceptsBelow?.(requestPath))
}
