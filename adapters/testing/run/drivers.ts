import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import type { CallContext, Conditions } from '../../../runtime/access/call-context.ts'
import { systemClock, withLongTimers } from '../../../runtime/ports/clock.ts'
import type { Kind } from '../../../runtime/primitives/options.ts'
import type { ServedRuntime } from '../../../runtime/runtime-options.ts'
import { connect } from '../../client/connect.ts'
import { checkMcpInstalled, MCP_PACKAGE } from '../../mcp/mcp-handler.ts'
import { serve, type Served } from '../../serve/serve.ts'
import { driverOf, SQLITE_PACKAGE } from '../../storage/driver.ts'
import type { Liveness } from './chart-run.ts'
import { TaskAnswers } from './mcp-answers.ts'
import { mcpCaller, recordAnswers } from './mcp-caller.ts'
import type { TestClient } from './official-caller.ts'
import type { DiskName, Interlude } from './world.ts'

/** The drivers of paths: an actor of the chart alone, or a client through a runtime. */
export const DRIVERS = {
  'the chart': 'live',
  'the chart, restored from JSON before every step': 'restored',
  'in process': { reach: 'in process', interlude: 'none' },
  'in process, restarted before every step': { reach: 'in process', interlude: 'restarted' },
  'in process, killed before every step': { reach: 'in process', interlude: 'killed' },
  'in process on SQLite, killed before every step': { reach: 'in process', interlude: 'killed', disk: 'SQLite' },
  'over WebSocket': { reach: 'WEBSOCKET', interlude: 'none' },
  'over WebSocket, killed before every step': { reach: 'WEBSOCKET', interlude: 'killed' },
  'over JSON-RPC': { reach: 'JSONRPC', interlude: 'none' },
  'over JSON-RPC, with the official client': { reach: 'JSONRPC', isOfficial: true, interlude: 'none' },
  'over REST, with the official client': { reach: 'HTTP+JSON', isOfficial: true, interlude: 'none' },
  'over MCP': { reach: 'MCP', interlude: 'none' },
  'over MCP, killed before every step': { reach: 'MCP', interlude: 'killed' }
} as const satisfies Record<string, Liveness | Manner>

/** The name of a driver. */
export type Driver = keyof typeof DRIVERS

/** The names of all drivers. */
export const allDrivers = Object.keys(DRIVERS) as readonly Driver[]

/** The kind of the option `drivers`. */
export const SOME_DRIVERS: Kind = [
  value => Array.isArray(value) && value.length > 0 && value.every(driver => allDrivers.includes(driver)),
  `a list of some of these drivers: ${allDrivers.map(driver => `'${driver}'`).join(', ')}`
]

/** The loaders of some drivers' dependencies. */
interface Needs {
  readonly official: () => Promise<unknown>
  readonly sqlite: () => Promise<unknown>
  readonly mcp: () => Promise<unknown>
}

const NEEDS: Needs = {
  official: () => import('./official-caller.ts'),
  sqlite: async () => driverOf(undefined),
  mcp: async () => checkMcpInstalled('The driver over MCP')
}

/** The drivers that can run here, and a line about the missing packages of others. */
export async function availableDrivers({ official, sqlite, mcp }: Needs = NEEDS): Promise<{
  readonly drivers: readonly Driver[]
  readonly lacks: readonly string[]
}> {
  const [hasOfficial, hasSqlite, hasMcp] = await Promise.all(
    [official, sqlite, mcp].map(load =>
      load().then(
        () => true,
        () => false
      )
    )
  )
  const lackOf = (driver: Driver): string | undefined => {
    const { disk, isOfficial, reach }: Partial<Manner> = Object(DRIVERS[driver])
    if (disk === 'SQLite' && !hasSqlite) return SQLITE_PACKAGE
    if (reach === 'MCP' && !hasMcp) return MCP_PACKAGE
    return isOfficial && !hasOfficial ? '@a2a-js/sdk' : undefined
  }
  const missing = allDrivers.filter(driver => lackOf(driver) !== undefined)
  const packages = new Set(missing.map(lackOf))
  const lacks =
    missing.length === 0 ? [] : [`not walked: ${missing.join('; ')}. To walk them: npm i -D ${[...packages].join(' ')}`]
  return { drivers: allDrivers.filter(driver => !missing.includes(driver)), lacks }
}

/** How an agent is called: in process, or over a binding. */
export interface DriverAccess {
  readonly reach: 'in process' | 'WEBSOCKET' | 'JSONRPC' | 'HTTP+JSON' | 'MCP'
  /** Whether to use the official SDK's client. */
  readonly isOfficial?: true
  /** The answers to `tasks/get` so far, if the agent is called over MCP. */
  readonly answers?: TaskAnswers
}

/**
 * Makes a caller of a runtime. Over a binding, the runtime is served on a loopback port. The official client is loaded
 * on demand.
 */
export async function createTestClient(
  runtime: ServedRuntime,
  { reach, isOfficial, answers = new TaskAnswers() }: DriverAccess
): Promise<TestClient> {
  if (reach === 'in process') return inProcess(runtime)
  // Connections use real time, since the agent's clock is virtual.
  const settings = { ...runtime.settings, clock: withLongTimers(systemClock) }
  const inRealTime: ServedRuntime = { ...runtime, settings }
  if (reach === 'MCP') {
    // The forms of offers expire at the agent's time.
    const clock = { ...settings.clock, now: () => runtime.settings.clock.now() }
    const recording = recordAnswers({ ...runtime, settings: { ...settings, clock } })
    // Its client polls, so no call of a tool has to wait.
    const served = await serve(recording.runtime, { port: 0, mcp: { waitMs: 0 } })
    const caller = mcpCaller(recording, inProcess(runtime), String(served.mcpUrl), answers)
    return { ...caller, close: () => served.close() }
  }
  const served = await serve(inRealTime, { port: 0 })
  return isOfficial ? withOfficial(served, reach) : withOurs(served, reach)
}

function inProcess(runtime: ServedRuntime): TestClient {
  const call = (conditions: Conditions = {}): CallContext => ({ extensions: [RELIABILITY_EXTENSION], conditions })
  return {
    send: message => runtime.sendMessage({ message, configuration: { returnImmediately: true } }, call()),
    events: (id, afterGeneration, signal) => runtime.subscribeToTask({ id }, { ...call({ afterGeneration }), signal }),
    task: id => runtime.getTask({ id }, call()),
    cancel: id => runtime.cancelTask({ id }, call()),
    close: async () => {}
  }
}

async function withOurs(served: Served, binding: string): Promise<TestClient> {
  const client = await connect(served.url, { bindings: [binding], giveUpAfterMs: 0 })
  return {
    send: message => client.sendMessage({ message, configuration: { returnImmediately: true } }),
    events: (id, afterGeneration, signal) => client.subscribeToTask({ id }, { afterGeneration, signal }),
    task: id => client.getTask({ id }),
    cancel: id => client.cancelTask({ id }),
    close: async () => {
      await client.close()
      await served.close()
    }
  }
}

async function withOfficial(served: Served, binding: string): Promise<TestClient> {
  const { officialCaller } = await import('./official-caller.ts')
  return { ...(await officialCaller(served.url, binding)), close: () => served.close() }
}

/** How a path is walked: how the agent is called, and what happens to its process between steps. */
export interface Manner extends DriverAccess {
  readonly interlude: Interlude
  /** The storage of its tasks. Default memory. */
  readonly disk?: DiskName
}
