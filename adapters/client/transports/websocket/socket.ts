import type { ClientRequest, IncomingMessage } from 'node:http'
import type { WebSocket } from 'ws'
import { A2AError } from '../../../../machines/protocol/errors.ts'
import { WEBSOCKET_SUBPROTOCOL } from '../../../../machines/protocol/uris.ts'
import { fromWireError } from '../../../../machines/protocol/wire-errors.ts'
import { currentAddress, currentHeaders, type PlacedOptions } from '../../options.ts'
import { jsonRpcErrorIn, passingError } from '../body.ts'
import { waitUntilOpen, type ClientSocket } from './client-socket.ts'

/** The most characters that are read of a refused handshake's body. */
const LONGEST_REFUSAL = 16 * 1024

/**
 * Opens a WebSocket of `ws`, which sends headers. Rejects if the agent is unreachable, and when the signal aborts.
 * Overloaded and RateLimited are temporary; any other A2AError is a refusal. In browsers `socket.browser.ts` replaces
 * this file.
 */
export async function openSocket(url: string, options: PlacedOptions, signal: AbortSignal): Promise<ClientSocket> {
  const headers = currentHeaders(options)
  const { WebSocket } = await import('ws')
  signal.throwIfAborted()
  const socket = new WebSocket(currentAddress(url, options), WEBSOCKET_SUBPROTOCOL, {
    headers,
    perMessageDeflate: false
  })
  return waitUntilOpen(socket, url, signal, reject => passRefusal(socket, url, reject))
}

/** Calls `refused` with the error if the handshake is answered with anything but 101. */
function passRefusal(socket: WebSocket, url: string, refused: (error: A2AError) => void): void {
  const refuse = async (request: ClientRequest, response: IncomingMessage) => {
    refused(await refusalIn(response, url))
    request.destroy()
    // If the request has already ended, the socket would wait for it.
    socket.terminate()
  }
  socket.on('unexpected-response', (request, response) => void refuse(request, response))
}

async function refusalIn(response: IncomingMessage, url: string): Promise<A2AError> {
  const status = Number(response.statusCode)
  const { headers } = response
  const passing = passingError({
    url,
    status,
    headers: { get: name => headers[name.toLowerCase()]?.toString() ?? null }
  })
  if (passing) return passing
  if (status === 401) return new A2AError('Unauthenticated', `The agent at ${url} requires credentials (HTTP 401).`)
  if (status === 403) return new A2AError('Forbidden', `The agent at ${url} refuses access.`)
  const error = jsonRpcErrorIn(await textOf(response))
  if (error !== undefined) return fromWireError(error)
  return new A2AError(
    'UnsupportedOperation',
    `The agent at ${url} refused the WebSocket handshake with HTTP ${status}.`
  )
}

/** The body of a response, up to the limit or to where it ends. */
async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  try {
    for await (const chunk of response.setEncoding('utf8')) {
      text += chunk
      if (text.length > LONGEST_REFUSAL) break
    }
  } catch {
    // The status alone is enough.
  }
  return text
}
