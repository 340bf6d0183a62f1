import type { ClientRequest, IncomingMessage } from 'node:http'
import type { WebSocket } from 'ws'
import { A2AError } from '../../../../machines/protocol/errors.ts'
import { WEBSOCKET_SUBPROTOCOL } from '../../../../machines/protocol/uris.ts'
import { fromWireError } from '../../../../machines/protocol/wire-errors.ts'
import { inBrowser } from '../../card/bindings.ts'
import { nobodyAnswers } from '../../retries/lost-errors.ts'
import { jsonRpcErrorIn, passingError } from '../http-errors.ts'

/** The common part of a browser's WebSocket and that of `ws`. */
export interface ClientSocket {
  readonly readyState: number
  send(text: string): void
  close(code?: number, reason?: string): void
  addEventListener(type: 'open', listener: () => void): void
  /** A browser does not expose the cause. */
  addEventListener(type: 'error', listener: (event: { error?: unknown }) => void): void
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void
  addEventListener(type: 'close', listener: (event: { code: number; reason: string }) => void): void
}

/** The maximum length of a refused handshake's body that is read. */
const REFUSAL_BYTES = 16 * 1024

/**
 * Opens a WebSocket: the browser's own, or that of `ws`, which can also send headers. Rejects if the agent is unreachable, and when
 * the signal aborts. Overloaded and RateLimited are temporary; any other A2AError is a refusal. A browser does not distinguish them.
 */
export async function openSocket(url: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<ClientSocket> {
  const ws = inBrowser() ? undefined : await import('ws')
  signal.throwIfAborted()
  return new Promise((resolve, reject) => {
    const socket: ClientSocket = ws
      ? nodeSocket(new ws.WebSocket(url, WEBSOCKET_SUBPROTOCOL, { headers, perMessageDeflate: false }), url, reject)
      : new globalThis.WebSocket(url, WEBSOCKET_SUBPROTOCOL)
    const abort = () => {
      socket.close()
      reject(signal.reason)
    }
    signal.addEventListener('abort', abort, { once: true })
    socket.addEventListener('open', () => {
      signal.removeEventListener('abort', abort)
      resolve(socket)
    })
    socket.addEventListener('error', ({ error }) => reject(nobodyAnswers(url, error)))
    socket.addEventListener('close', () => reject(nobodyAnswers(url)))
  })
}

/** Calls `refused` with the error if the handshake is answered with anything but 101. */
function nodeSocket(socket: WebSocket, url: string, refused: (error: A2AError) => void): WebSocket {
  const refuse = async (request: ClientRequest, response: IncomingMessage) => {
    refused(await refusalIn(response, url))
    request.destroy()
    // If the request has already ended, the socket would wait for it.
    socket.terminate()
  }
  socket.on('unexpected-response', (request, response) => void refuse(request, response))
  return socket
}

async function refusalIn(response: IncomingMessage, url: string): Promise<A2AError> {
  const status = Number(response.statusCode)
  const { headers } = response
  const passing = passingError({ url, status, headers: { get: name => headers[name.toLowerCase()]?.toString() ?? null } })
  if (passing) return passing
  if (status === 401) return new A2AError('Unauthenticated', `The agent at ${url} requires credentials. Connect with { headers: { authorization: … } }.`)
  if (status === 403) return new A2AError('Forbidden', `The agent at ${url} refuses access.`)
  const error = jsonRpcErrorIn(await textOf(response))
  if (error !== undefined) return fromWireError(error)
  return new A2AError('UnsupportedOperation', `The agent at ${url} refused the WebSocket handshake with HTTP ${status}.`)
}

/** The body of a response, up to the limit or to where it ends. */
async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  try {
    for await (const chunk of response.setEncoding('utf8')) {
      text += chunk
      if (text.length > REFUSAL_BYTES) break
    }
  } catch {
    // The status alone is enough.
  }
  return text
}
