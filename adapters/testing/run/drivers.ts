import type { Kind } from '../../../runtime/primitives/options.ts'
import { driverOf, SQLITE_PACKAGE } from '../../storage/driver.ts'
import type { Liveness } from './chart-run.ts'
import type { Manner } from './path-run.ts'

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
  'over REST, with the official client': { reach: 'HTTP+JSON', isOfficial: true, interlude: 'none' }
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
}

const NEEDS: Needs = { official: () => import('./official-caller.ts'), sqlite: async () => driverOf(undefined) }

/** The drivers that can run here, and a line about the missing packages of others. */
export async function availableDrivers({ official, sqlite }: Needs = NEEDS): Promise<{
  readonly drivers: readonly Driver[]
  readonly lacks: readonly string[]
}> {
  const [hasOfficial, hasSqlite] = await Promise.all(
    [official, sqlite].map(load =>
      load().then(
        () => true,
        () => false
      )
    )
  )
  const lackOf = (driver: Driver): string | undefined => {
    const { disk, isOfficial }: Partial<Manner> = Object(DRIVERS[driver])
    if (disk === 'SQLite' && !hasSqlite) return SQLITE_PACKAGE
    return isOfficial && !hasOfficial ? '@a2a-js/sdk' : undefined
  }
  const missing = allDrivers.filter(driver => lackOf(driver) !== undefined)
  const packages = new Set(missing.map(lackOf))
  const lacks =
    missing.length === 0 ? [] : [`not walked: ${missing.join('; ')}. To walk them: npm i -D ${[...packages].join(' ')}`]
  return { drivers: allDrivers.filter(driver => !missing.includes(driver)), lacks }
}
