import type { WebSocket } from 'ws'
import type { Clock } from '../../runtime/ports/clock.ts'

/** The interval of pings. */
export const PING_INTERVAL_MS = 30_000

/** The number of consecutive pings without an answer after which a connection is closed. */
const MISSED_PONGS = 2

/**
 * Pings every client and disconnects those that do not answer. A paused client cannot answer: the `Outbox` watches it
 * meanwhile. Returns the function that stops it.
 */
export function startHeartbeat(clients: ReadonlySet<WebSocket>, clock: Clock): () => void {
  const missed = new WeakMap<WebSocket, number>()
  let timer: unknown
  const beat = () => {
    for (const client of clients) {
      if (client.isPaused) continue
      const count = missed.get(client)
      if (count === undefined) client.on('pong', () => missed.set(client, 0))
      if ((count ?? 0) >= MISSED_PONGS) {
        client.terminate()
        continue
      }
      missed.set(client, (count ?? 0) + 1)
      client.ping()
    }
    timer = clock.setTimeout(beat, PING_INTERVAL_MS)
  }
  timer = clock.setTimeout(beat, PING_INTERVAL_MS)
  return () => clock.clearTimeout(timer)
}
