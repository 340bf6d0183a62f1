import { readdirSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { serveMetrics } from '../../adapters/serve/serve-metrics.ts'
import { webhooks } from '../../adapters/push/webhooks.ts'
import { serve } from '../../adapters/serve/serve.ts'
import { sqliteStore } from '../../adapters/storage/sqlite.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import { agent, authenticate } from './agent.ts'

/** Its options, as JSON. */
export interface SoakedOptions {
  readonly file: string
  readonly port: number
  readonly retentionMs: number
}

/** A report to its parent: where it serves, or its sizes right after a garbage collection, in bytes and numbers. */
export type SoakedTold = { readonly url: string; readonly metrics: string } | SoakedSizes

export interface SoakedSizes {
  /** The heap, and what lies outside of it for objects on it. */
  readonly heap: number
  readonly rss: number
  /** The number of handles of its event loop: sockets, timers, servers. */
  readonly handles: number
  /** Open files; 0 where the system does not tell. */
  readonly files: number
}

const { file, port, retentionMs } = JSON.parse(process.argv[2] ?? '') as SoakedOptions
const tell = (told: SoakedTold) => process.send?.(told)
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const runtime = createRuntime({
  agent,
  authenticate,
  store: sqliteStore(file),
  push: webhooks({ allowLoopback: true }),
  observeProperties: true,
  retention: { endedTasksMs: retentionMs, idleContextsMs: retentionMs, sweepEveryMs: Math.ceil(retentionMs / 10) },
  limits: { advanced: { dedupeWindowMs: retentionMs } }
})
const { url } = await serve(runtime, { port })
const metrics = await serveMetrics(runtime, { port: 0 })
process.on('disconnect', () => process.exit())
process.on('message', () => {
  collect()
  const { heapUsed, external, rss } = process.memoryUsage()
  tell({ heap: heapUsed + external, rss, handles: process.getActiveResourcesInfo().length, files: openFiles() })
})
tell({ url, metrics: metrics.url })

function openFiles(): number {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return 0
  }
}
