import type { ClientRequest, IncomingMessage } from 'node:http'
import type { WebSocket } from 'ws'
import { A2AError } from '../../../../machines/protocol/errors.ts'
import { WEBSOCKET_SUBPROTOCOL } from '../../../../machines/protocol/uris.ts'
import { fromWireError } from '../../../../machines/protocol/wire-errors.ts'
import { inBrowser } from '../../in-browser.ts'
import { nobodyAnswers } from '../../retries/lost-errors.ts'
import { passingError } from '../http-errors.ts'
import { jsonRpcErrorIn } from '../json-rpc-error.ts'

/** What both a browser's WebSocket and that of `ws` can do. */
export interface ClientSocket {
  readonly readyState: number
  send(text: string): void
  close(code?: number, reason?: string): void
  addEventListener(type: 'open', listener: () => void): void
  /** A browser does not tell what went wrong. */
  addEventListener(type: 'error', listener: (event: { error?: unknown }) => void): void
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void
  addEventListener(type: 'close', listener: (event: { code: number; reason: string }) => void): void
}

/** How much of the body of a refused handshake is read. */
const REFUSAL_BYTES = 16 * 1024

/**
 * Opens a WebSocket: the browser's own, elsewhere that of `ws`, which can also send headers. Rejects if nobody answers, and when
 * the signal aborts. Overloaded and RateLimited may pass; every other A2AError is a refusal, which a browser cannot tell apart.
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

/** Has `refused` hear why, if the handshake is answered with anything but 101. */
function nodeSocket(socket: WebSocket, url: string, refused: (error: A2AError) => void): WebSocket {
  const refuse = async (request: ClientRequest, response: IncomingMessage) => {
    refused(await refusalIn(response, url))
    request.destroy()
    // The request may have ended by itself, and the socket would wait for it.
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
  if (status === 401) return new A2AError('Unauthenticated', `The agent at ${url} wants credentials. Connect with { headers: { authorization: … } }.`)
  if (status === 403) return new A2AError('Forbidden', `The agent at ${url} does not let this client in.`)
  const error = jsonRpcErrorIn(await textOf(response))
  if (error !== undefined) return fromWireError(error)
  return new A2AError('UnsupportedOperation', `The agent at ${url} refused the WebSocket handshake with HTTP ${status}.`)
}

/** The body of an answer, as far as it comes and is read. */
async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  try {
    for await (const chunk of response.setEncoding('utf8')) {
      text += chunk
      if (text.length > REFUSAL_BYTES) break
    }
  } catch {
    // The status alone says enough.
  }
  return text
}
