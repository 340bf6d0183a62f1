import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { A2AError } from '../../machines/protocol/errors.ts'
import { overShare, Shares, type Sharer } from '../../runtime/access/shares.ts'
import { textSuchAs, type Kind, type OptionKinds } from '../../runtime/primitives/options.ts'
import { PrivateProperty } from '../../runtime/primitives/private-property.ts'
import { onAbort } from '../../runtime/primitives/promises.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { isLoopback, pathOf, targetOf, type Refusal } from './admission.ts'
import { formOf, refusalOf, refusalText } from './answers.ts'
import { disconnectSignal, type Handler } from './connection.ts'

/** The requests of one connection: whether one is being answered, and what begins those behind it. */
interface Line {
  isBusy: boolean
  readonly waiting: (() => void)[]
}

/**
 * Answers the requests of one connection one after the other, in their order (RFC 9112 §9.3.2). Node hands over every request
 * of a chunk at once: answered together, all of their answers would wait in memory for a client that may not read. With more
 * than `most` requests waiting, no more bytes are read from the connection.
 */
export class InTurn {
  readonly #most: number
  readonly #lines = new PrivateProperty<Socket, Line>()

  constructor(most: number) {
    this.#most = most
  }

  /** Calls `answer` when the responses before this one are finished. Nothing is called once the connection is closed. */
  add({ socket }: IncomingMessage, response: ServerResponse, answer: () => void): void {
    const line = this.#lineOf(socket)
    response.once('close', () => this.#next(line, socket))
    if (!line.isBusy) {
      line.isBusy = true
      return answer()
    }
    line.waiting.push(answer)
    if (line.waiting.length > this.#most) socket.pause()
  }

  #next(line: Line, socket: Socket): void {
    if (socket.destroyed) return
    const answer = line.waiting.shift()
    if (line.waiting.length === this.#most) socket.resume()
    line.isBusy = answer !== undefined
    answer?.()
  }

  #lineOf(socket: Socket): Line {
    const known = this.#lines.get(socket)
    if (known) return known
    const line: Line = { isBusy: false, waiting: [] }
    this.#lines.set(socket, line)
    // Node resumes the connection whenever a body is read, also after it was paused in the same turn. Then only the event stops it.
    socket.on('resume', () => {
      if (line.waiting.length <= this.#most) return
      socket.pause()
      socket.emit('pause')
    })
    return line
  }
}

/** A port to listen on. */
export interface Address {
  /** 0 takes a free one. */
  readonly port: number
  /** Address to bind. Default `127.0.0.1`; others need a runtime with `authenticate`, and all at once (`0.0.0.0`, `::`) one with `publicUrl` or `hosts`. */
  readonly host?: string
}

/** The options of an address, for those who take it among others. */
export const ADDRESS: OptionKinds<Address> = {
  port: [value => typeof value === 'number', 'a number such as 4242, or 0 for a free port'],
  host: textSuchAs("'127.0.0.1'")
}

/** The option `path` of what is served. */
export const A_PATH: Kind = [value => typeof value === 'string' && value.startsWith('/'), "a path that begins with a slash, such as '/agent'"]

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
export const GOING: Refusal = refusalOf(new A2AError('Overloaded', 'The server restarts. Try again later.', { retryAfterMs: 1000 }))

/** What a client hears when there are as many connections, or requests under way, as the server takes. */
export const FULL: Refusal = refusalOf(new A2AError('Overloaded', 'The server has as many connections as it takes. Try again later.', { retryAfterMs: 1000 }))

/** The limit that callers share. */
const CONNECTIONS = { limit: 'connections', what: 'connections or pending requests', advice: 'Close one, or retry later.' } as const

/** The refusal of a connection, or a request under way, that is over the share of its caller; `undefined` if it is not. */
export function shareRefusal(shares: Shares, sharer: Sharer): Refusal | undefined {
  const lacking = shares.lacking(sharer)
  return lacking && refusalOf(overShare(CONNECTIONS, lacking, sharer, shares))
}

/** Listens on a port and answers with a handler. Resolves when connections are taken; throws TypeError for an address that `checkHost` refuses. */
export async function listen({ port, host = '127.0.0.1' }: Address, runtime: Runtime, handler: Handler): Promise<Listening> {
  checkHost(host, runtime)
  const { settings } = runtime
  const server = createServer({ headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS, connectionsCheckingInterval: 1000 })
  const answer = getRequestListener(
    (request, { incoming, outgoing }) => handler(request, { direct: { response: outgoing as ServerResponse, socket: incoming.socket, claim: sharer => claim(outgoing as ServerResponse, sharer) } }),
    { overrideGlobalObjects: false }
  )
  const inTurn = new InTurn(settings.limits.callsPerConnection)
  let isDraining = false
  const shares = new Shares(settings.limits.connections, settings.limits)
  const underWay = new Map<ServerResponse, Sharer | undefined>()
  const claim = (response: ServerResponse, sharer: Sharer) => {
    const refusal = shareRefusal(shares, sharer)
    if (!refusal && underWay.has(response)) {
      underWay.set(response, sharer)
      shares.add(sharer)
    }
    return refusal
  }
  // Node takes its own listener from a socket that asked for an upgrade: an error would end the process.
  const ignore = () => {}
  server.on('connection', socket => socket.off('error', ignore).on('error', ignore))
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const target = isDraining ? GOING : underWay.size >= settings.limits.connections ? FULL : targetOf(request, settings)
    if ('status' in target) {
      const body = refusalText(target, formOf(request.method, pathOf(request)))
      response.writeHead(target.status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body), ...target.headers }).end(body)
      return
    }
    // From here on an absolute target is a path and a Host header (RFC 9112 §3.2.2).
    request.url = target.path
    request.headers.host = target.host
    const over = () => {
      const sharer = underWay.get(response)
      if (sharer) shares.add(sharer, -1)
      underWay.delete(response)
      stopListening()
    }
    // A response that stands behind another on its connection does not close when that breaks.
    const stopListening = onAbort(disconnectSignal(request.socket), over)
    response.once('close', over)
    // Requests that wait behind another on their connection are not under way.
    inTurn.add(request, response, () => {
      underWay.set(response, undefined)
      void answer(request, response)
    })
  })
  server.listen(port, host)
  await once(server, 'listening')
  try {
    // A name may stand for any address.
    checkHost((server.address() as AddressInfo).address, runtime)
  } catch (error) {
    await closed(server)
    throw error
  }
  const drain = () => {
    isDraining = true
  }
  return { server, drain, close: () => (drain(), closed(server)) }
}

/** Throws TypeError for an address that others reach, if everyone may call, and for all addresses at once, if nothing says which the card gives. */
export function checkHost(host: string, { settings: { authenticate, publicUrl, hosts } }: Runtime): void {
  if (!isLoopback(host) && !authenticate) throw new TypeError(`Without authenticate anyone could use the agent on ${host}. Give createRuntime({ authenticate }), or bind 127.0.0.1.`)
  if (!isEveryAddress(host) || hosts || publicUrl !== undefined) return
  throw new TypeError(`On ${host} the agent has every address of this machine, so its card cannot say where it is. Give createRuntime({ publicUrl }) or createRuntime({ hosts }), or bind one address.`)
}

/** True for what listens on all addresses of a machine. */
export function isEveryAddress(host: string): boolean {
  return ['', '0.0.0.0', '::', '::ffff:0.0.0.0'].includes(host)
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
