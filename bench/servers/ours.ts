import { serveWebSocket } from '../../adapters/websocket/server.ts'
import { defineAgent } from '../../runtime/agent.ts'
import type { Limits } from '../../runtime/limits.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import { report } from './control.ts'
import { ourWork } from './ours-work.ts'

/** What this server is started with, as JSON. */
export interface OursOptions {
  readonly work: keyof typeof ourWork
  readonly limits?: Partial<Limits>
}

const { work, limits = {} } = JSON.parse(process.argv[2] ?? '') as OursOptions

const agent = defineAgent({ card: { name: 'Bench' }, work: ourWork[work] })
// All load comes over one connection, which one client's rate limit would end.
const runtime = createRuntime({ agent, limits: { framesPerSecond: 1_000_000, ...limits } })
const { url } = await serveWebSocket(runtime, { port: 0 })
report(Number(new URL(url).port))
