import { serve } from '../../adapters/serve/serve.ts'
import { sqliteStore } from '../../adapters/storage/sqlite.ts'
import { defineAgent } from '../../runtime/agent/define-agent.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import { report } from './control.ts'
import { ourWork } from './ours-work.ts'
import type { OursOptions } from './ours.ts'

/**
 * A server that loads nothing but what its tasks need, so that its resident memory is that of its tasks: WebSocket and
 * a SQLite file.
 */
const { work, limits = {}, file = '', deadlineMs } = JSON.parse(process.argv[2] ?? '') as OursOptions
const agent = defineAgent({
  card: { name: 'Bench' },
  work: ourWork[work],
  ...(deadlineMs !== undefined && { deadlineMs })
})
const runtime = createRuntime({
  agent,
  store: sqliteStore(file),
  limits: { ...limits, advanced: { ...limits.advanced, framesPerSecond: 1_000_000 } }
})
const { url } = await serve(runtime, { port: 0, http: false })
report(Number(new URL(url).port))
