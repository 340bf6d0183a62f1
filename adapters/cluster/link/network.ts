import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { WebSocket, WebSocketServer } from 'ws'
import { onReceived } from '../../../runtime/primitives/event-loop.ts'
import { originRefusal, targetOf, type AllowList } from '../../entry/admission.ts'

/** How long a node may be silent, also while it is connected, in milliseconds. */
export const SILENT_MS = 3000

/** The most bytes of one frame: a task's events are smaller. */
const FRAME_BYTES = 64 * 1024 * 1024

/** The most bytes on a connection that has not proved to be from a node. */
const PROOF_BYTES = 4096

/** No page connects to a node. */
const ALLOWED: AllowList = { ownPages: 'none' }

/** One end of a connection between two nodes: the part of a WebSocket of `ws` that they use. */
export interface LinkSocket {
  readonly readyState: number
  readonly OPEN: number
  /** Bytes that are not sent yet. */
  readonly bufferedAmount: number
  send(frame: string): void
  ping(): void
  close(code: number, reason: string): void
  terminate(): void
  on(event: 'message' | 'ping' | 'close' | 'error', listener: (data: unknown) => void): unknown
}

/** Where a node listens for the others. */
export interface ListenPlace {
  readonly host: string
  readonly port: number
}

/** The connections between nodes. */
export interface Network {
  /** Connects to the node at an address. A socket that cannot connect closes. */
  connect(address: string): LinkSocket
  /**
   * Listens, and resolves with what ends that and all connections. A connection may send little until `proved`. Rejects
   * if the port is in use.
   */
  listen(place: ListenPlace, accept: (socket: LinkSocket, proved: () => void) => void): Promise<() => Promise<void>>
}

/** Connects nodes by WebSocket. */
export const webSockets: Network = {
  connect: address =>
    new WebSocket(address, { handshakeTimeout: SILENT_MS, maxPayload: FRAME_BYTES, perMessageDeflate: false }),
  async listen({ host, port }, accept) {
    const http = createServer(upgradeRequired).on('checkContinue', upgradeRequired)
    const server = new WebSocketServer({
      server: http,
      maxPayload: FRAME_BYTES,
      perMessageDeflate: false,
      verifyClient: ({ req }, answer) => {
        const target = targetOf(req, ALLOWED)
        const refusal = 'status' in target ? target : originRefusal(req.headers.origin, target.host, ALLOWED)
        answer(refusal === undefined, refusal?.status, refusal?.message)
      }
    })
    http.listen(port, host)
    await once(server, 'listening')
    server.on('connection', (socket, { socket: stream }) => {
      let bytes = 0
      let isProved = false
      const count = (chunk: Buffer) => {
        bytes += chunk.length
        if (!isProved && bytes > PROOF_BYTES) socket.terminate()
      }
      onReceived(stream, 'data', count)
      accept(socket, () => (isProved = true))
    })
    return () => {
      for (const socket of server.clients) socket.terminate()
      server.close()
      http.closeAllConnections()
      return new Promise(resolve => http.close(() => resolve()))
    }
  }
}

/** Answers a request that is no handshake. Its body is not wanted. */
function upgradeRequired(_: IncomingMessage, response: ServerResponse): void {
  response.writeHead(426, { Connection: 'close', 'Content-Length': 0, Upgrade: 'websocket' }).end()
}
