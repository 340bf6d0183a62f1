import { WEBSOCKET_SUBPROTOCOL } from '../../../../machines/protocol/uris.ts'
import { currentAddress, type PlacedOptions } from '../../options.ts'
import { waitUntilOpen, type ClientSocket } from './client-socket.ts'

/**
 * Opens the browser's own WebSocket, which sends no headers. Rejects with Overloaded if the agent is unreachable or
 * refuses the handshake, which a browser does not distinguish, and when the signal aborts.
 */
export async function openSocket(url: string, options: PlacedOptions, signal: AbortSignal): Promise<ClientSocket> {
  return waitUntilOpen(new WebSocket(currentAddress(url, options), WEBSOCKET_SUBPROTOCOL), url, signal)
}
