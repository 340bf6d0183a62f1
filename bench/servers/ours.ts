import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { postgresNode } from '../../adapters/cluster/cluster.ts'
import { drawChart } from '../../adapters/drawing/chart-drawing.ts'
import { inspect } from '../../adapters/inspector/index.ts'
import { builtPage, Inspector } from '../../adapters/inspector/inspector.ts'
import { loadStately } from '../../adapters/inspector/stately.ts'
import { postgresStore } from '../../adapters/postgres/postgres.ts'
import { serve } from '../../adapters/serve/serve.ts'
import { sqliteStore } from '../../adapters/storage/sqlite.ts'
import type { LimitChanges } from '../../runtime/access/limits.ts'
import type { TenantOptions } from '../../runtime/access/tenants.ts'
import { redactValue } from '../../runtime/ports/logger.ts'
import { defineAgent } from '../../runtime/agent/define-agent.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import { BENCH_TOKEN, report } from './control.ts'
import { ourWork } from './ours-work.ts'

/** What this server is started with, as JSON. */
export interface OursOptions {
  readonly work: keyof typeof ourWork
  readonly limits?: LimitChanges
  readonly tenants?: TenantOptions
  /** Whether tasks are in a SQLite file; else in memory. A file that is given stays. */
  readonly durable?: boolean
  readonly file?: string
  /** The URL and the schema of a PostgreSQL database for the tasks. */
  readonly database?: string
  readonly schema?: string
  /** Makes it a node of those that share the database. */
  readonly node?: { readonly address: string; readonly secret: string }
  readonly deadlineMs?: number
  /** Whether its inspector is served beside it. */
  readonly inspected?: boolean
  /** Whether that records from the start, as in `taskchart dev`. */
  readonly recorded?: boolean
  /** Whether properties are observed. */
  readonly observed?: boolean
  /** Whether it is served over MCP too. */
  readonly mcp?: boolean
  /** Whether the header `x-principal` names its callers. */
  readonly named?: boolean
}

const {
  work,
  limits = {},
  tenants,
  durable,
  file,
  database,
  schema = 'taskchart',
  node: place,
  deadlineMs,
  inspected,
  recorded,
  observed = false,
  mcp = false,
  named = false
} = JSON.parse(process.argv[2] ?? '') as OursOptions

const agent = defineAgent({
  card: { name: 'Bench' },
  work: ourWork[work],
  ...(deadlineMs !== undefined && { deadlineMs })
})
// All load comes over one connection, which one client's rate limit would end.
const node = database !== undefined && place ? await postgresNode(database, { schema, ...place }) : undefined
const store = node
  ? node.store
  : database !== undefined
    ? await postgresStore(database, { schema })
    : durable || file !== undefined
      ? sqliteStore(file ?? temporaryFile())
      : undefined
const runtime = createRuntime({
  agent,
  observeProperties: observed,
  ...(store && { store }),
  ...(node && { cluster: node }),
  ...(tenants && { tenants }),
  ...(named && { authenticate: ({ headers }) => ({ id: String(headers['x-principal']) }) }),
  limits: { ...limits, advanced: { ...limits.advanced, framesPerSecond: 1_000_000 } }
})
await node?.open()
const { url } = await serve(runtime, {
  port: 0,
  mcp,
  ...(inspected && { inspector: recorded ? recording() : inspect({ token: BENCH_TOKEN }) })
})
report(Number(new URL(url).port))

/** The inspector of `taskchart dev`. */
function recording(): Inspector {
  return new Inspector({
    redact: redactValue,
    draw: drawChart,
    alwaysRecord: true,
    coverage: async () => undefined,
    page: builtPage,
    loadStately,
    token: BENCH_TOKEN
  })
}

/** A file in a folder that goes with the process. */
function temporaryFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'taskchart-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'tasks.db')
}
