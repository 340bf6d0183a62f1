import { repeat } from './load.ts'
import { httpLoad } from './http-load.ts'
import { mcpPollLoad } from './poll-load.ts'
import { webSocketLoad } from './websocket-load.ts'
import { messageParams } from '../scenarios/message.ts'

/** What a flood is started with, as JSON. */
export interface FloodOptions {
  readonly port: number
  /** `MCP`: polls of this many tasks that wait, which the principal of this name opens first. */
  readonly over: 'WebSocket' | 'HTTP' | { readonly polls: number; readonly principal: string }
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

let taken = 0
let refused = 0
const tell = () => {
  process.send?.({ taken, refused } satisfies FloodTold)
  taken = refused = 0
}

process.on('disconnect', () => process.exit())
const once = typeof over === 'object' ? await polls(over) : await messages(over)
setInterval(tell, 1000)
tell()
await repeat(Infinity, inFlight, index =>
  once(index).then(
    () => void (taken += 1),
    () => void (refused += 1)
  )
)

async function messages(over: 'WebSocket' | 'HTTP'): Promise<() => Promise<unknown>> {
  const load = await (over === 'HTTP' ? httpLoad : webSocketLoad)(port, connections)
  return () => load.call('SendMessage', { ...messageParams({ kind: 'artifact' }), tenant })
}

/** Opens tasks that wait, and polls one after the other. */
async function polls({ polls, principal }: Extract<FloodOptions['over'], object>) {
  const load = await mcpPollLoad(port, connections, principal)
  const taskIds: string[] = []
  await repeat(polls, 16, async () => void taskIds.push(await load.call('open')))
  return (index: number) => load.call('poll', taskIds[index % polls])
}
