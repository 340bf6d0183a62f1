import type { WebSocket } from 'ws'
import type { Clock } from '../../runtime/ports/clock.ts'

/** How often a client is pinged. */
export const PING_INTERVAL_MS = 30_000

/** Pings in a row that a client may leave unanswered before its connection is cut. */
const MISSED_PONGS = 2

/**
 * Pings every connected client and cuts off those that are gone without a word. One from which nothing is read just now
 * cannot answer: the `Outbox` watches it meanwhile. The answer stops it.
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
