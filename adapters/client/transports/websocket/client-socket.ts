import { nobodyAnswers } from '../../retries/lost-errors.ts'

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

/**
 * Resolves with the socket when it is open. Rejects if it closes before, and when the signal aborts. `refused` is
 * called with the function that rejects, for a socket that can say why its handshake failed.
 */
export async function waitUntilOpen(
  socket: ClientSocket,
  url: string,
  signal: AbortSignal,
  refused: (reject: (error: unknown) => void) => void = () => {}
): Promise<ClientSocket> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      socket.close()
      reject(signal.reason)
    }
    refused(reject)
    signal.addEventListener('abort', abort, { once: true })
    socket.addEventListener('open', () => {
      signal.removeEventListener('abort', abort)
      resolve(socket)
    })
    socket.addEventListener('error', ({ error }) => reject(nobodyAnswers(url, error)))
    socket.addEventListener('close', () => reject(nobodyAnswers(url)))
  })
}
