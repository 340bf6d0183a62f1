import { once } from 'node:events'
import { WebSocket } from 'ws'
import { BENCH_TOKEN } from '../servers/control.ts'
import type { Load } from './load.ts'
import { webSocketLoad } from './websocket-load.ts'

/** Clients over one connection, while a page of the inspector is connected and reads what it is told. */
export async function inspectedLoad(port: number): Promise<Load> {
  const page = new WebSocket(`ws://127.0.0.1:${port}/inspector/feed?token=${BENCH_TOKEN}`, { perMessageDeflate: false })
  let frames = 0
  page.on('message', () => (frames += 1))
  // Its greeting: by then it observes.
  await once(page, 'message')
  const load = await webSocketLoad(port, 1)
  return {
    ...load,
    close: async () => {
      await load.close()
      page.close()
      await once(page, 'close')
      if (frames < 2) throw new Error('The page was told nothing.')
    }
  }
}
