import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

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
