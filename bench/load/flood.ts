import { repeat } from './load.ts'
import { httpLoad } from './http-load.ts'
import { webSocketLoad } from './websocket-load.ts'
import { messageParams } from '../scenarios/message.ts'

/** What a flood is started with, as JSON. */
export interface FloodOptions {
  readonly port: number
  readonly over: 'WebSocket' | 'HTTP'
  readonly tenant: string
  readonly connections: number
  /** Requests under way on all connections. Each is sent again at once when it is answered, however. */
  readonly inFlight: number
}

/** What a flood tells: that it has begun, then each second how much was taken and how much refused in that. */
export interface FloodTold {
  readonly taken: number
  readonly refused: number
}

const { port, over, tenant, connections, inFlight } = JSON.parse(process.argv[2] ?? '') as FloodOptions

const load = await (over === 'HTTP' ? httpLoad : webSocketLoad)(port, connections)
let taken = 0
let refused = 0
const tell = () => {
  process.send?.({ taken, refused } satisfies FloodTold)
  taken = refused = 0
}

process.on('disconnect', () => process.exit())
setInterval(tell, 1000)
tell()
await repeat(Infinity, inFlight, () =>
  load.call('SendMessage', { ...messageParams({ kind: 'artifact' }), tenant }).then(
    () => void (taken += 1),
    () => void (refused += 1)
  )
)
