import type { WebSocket } from 'ws'
import { A2AError } from '../../machines/protocol/errors.ts'
import { WEBSOCKET_SUBPROTOCOL } from '../../machines/protocol/uris.ts'
import { inBrowser } from '../client/in-browser.ts'
import { nobodyAnswers } from '../client/lost-errors.ts'

/** What both a browser's WebSocket and that of `ws` can do. */
export interface ClientSocket {
  readonly readyState: number
  send(text: string): void
  close(code?: number, reason?: string): void
  addEventListener(type: 'open' | 'error', listener: () => void): void
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void
  addEventListener(type: 'close', listener: (event: { code: number; reason: string }) => void): void
}

/** Opens a WebSocket: the browser's own, elsewhere that of `ws`, which can also send headers. Rejects if nobody answers, and when the signal aborts. */
export async function openSocket(url: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<ClientSocket> {
  const ws = inBrowser() ? undefined : await import('ws')
  signal.throwIfAborted()
  const refused = { status: undefined as number | undefined }
  const socket: ClientSocket = ws ? nodeSocket(new ws.WebSocket(url, WEBSOCKET_SUBPROTOCOL, { headers, perMessageDeflate: false }), refused) : new globalThis.WebSocket(url, WEBSOCKET_SUBPROTOCOL)
  return new Promise((resolve, reject) => {
    const abort = () => {
      socket.close()
      reject(signal.reason)
    }
    signal.addEventListener('abort', abort, { once: true })
    socket.addEventListener('open', () => {
      signal.removeEventListener('abort', abort)
      resolve(socket)
    })
    socket.addEventListener('error', () => reject(noAnswer(url, refused.status)))
    socket.addEventListener('close', () => reject(noAnswer(url, refused.status)))
  })
}

function nodeSocket(socket: WebSocket, refused: { status: number | undefined }): WebSocket {
  socket.on('unexpected-response', (request, response) => {
    refused.status = response.statusCode
    request.destroy(new Error(`The handshake was answered with ${response.statusCode}.`))
  })
  return socket
}

function noAnswer(url: string, status: number | undefined): A2AError {
  if (status === 401) return new A2AError('Unauthenticated', `The agent at ${url} wants credentials. Connect with { headers: { authorization: … } }.`)
  if (status === 403) return new A2AError('Forbidden', `The agent at ${url} does not let this client in.`)
  if (status !== undefined) return new A2AError('UnsupportedOperation', `The agent at ${url} refused the WebSocket handshake with HTTP ${status}.`)
  return nobodyAnswers(url)
}
