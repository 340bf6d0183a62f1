import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { onAbort } from '../../runtime/on-abort.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { refusalText } from './answers.ts'
import { isLoopback, type Refusal } from './entry.ts'
import { goneWith } from './gone.ts'
import type { Handler } from './handler.ts'
import { incomingRefusal } from './incoming.ts'
import { InTurn } from './in-turn.ts'

/** A port to listen on. */
export interface Address {
  /** 0 takes a free one. */
  readonly port: number
  /** Address to bind. Default `127.0.0.1`; others need a runtime with `authenticate`. */
  readonly host?: string
}

/** A server of our own that listens. */
export interface Listening {
  readonly server: Server
  /** Answers every request with 503 from now on. */
  drain(): void
  close(): Promise<void>
}

const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 30_000

/** What a client hears that comes when the server is about to close. */
export const GOING: Refusal = { status: 503, message: 'The server restarts. Try again later.', headers: { 'Retry-After': '1' } }

/** What a client hears when there are as many connections, or requests under way, as the server takes. */
export const FULL: Refusal = { status: 503, message: 'The server has as many connections as it takes. Try again later.', headers: { 'Retry-After': '1' } }

/** Listens on a port and answers with a handler. Resolves when connections are taken; throws TypeError when this would open an agent without `authenticate` to others. */
export async function listen({ port, host = '127.0.0.1' }: Address, runtime: Runtime, handler: Handler): Promise<Listening> {
  checkHost(host, runtime)
  const { settings } = runtime
  const server = createServer({ headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS, connectionsCheckingInterval: 1000 })
  const answer = getRequestListener(
    (request, { incoming, outgoing }) => handler(request, { direct: { response: outgoing as ServerResponse, socket: incoming.socket } }),
    { overrideGlobalObjects: false }
  )
  const inTurn = new InTurn(settings.limits.callsPerConnection)
  let isDraining = false
  let underWay = 0
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const refusal = isDraining ? GOING : underWay >= settings.limits.connections ? FULL : incomingRefusal(request, settings)
    if (refusal) {
      response.writeHead(refusal.status, { 'Content-Type': 'application/json', ...refusal.headers }).end(refusalText(refusal))
      return
    }
    underWay += 1
    let isOver = false
    const over = () => {
      if (!isOver) underWay -= 1
      isOver = true
      stopListening()
    }
    // A response that stands behind another on its connection does not close when that breaks.
    const stopListening = onAbort(goneWith(request.socket), over)
    response.once('close', over)
    inTurn.add(request, response, () => void answer(request, response))
  })
  server.listen(port, host)
  await once(server, 'listening')
  const drain = () => {
    isDraining = true
  }
  return { server, drain, close: () => (drain(), closed(server)) }
}

/** Throws TypeError for an address that others reach, if everyone may call. */
export function checkHost(host: string, { settings }: Runtime): void {
  if (isLoopback(host) || settings.authenticate) return
  throw new TypeError(`Without authenticate anyone could use the agent on ${host}. Give createRuntime({ authenticate }), or bind 127.0.0.1.`)
}

/** The address of a server that listens, `http://127.0.0.1:4242` and a path. */
export function addressOf(server: Server, path: string): string {
  const { address, port, family } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}${path}`
}

async function closed(server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}
