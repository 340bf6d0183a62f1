import type { Kind } from '../../runtime/primitives/options.ts'
import { driverOf } from '../storage/driver.ts'
import type { Liveness } from './chart-run.ts'
import type { Manner } from './path-run.ts'

/** The ways of walking a path: with an actor of the chart alone, or through a runtime. */
export const WAYS = {
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

/** A way of walking paths. */
export type Way = keyof typeof WAYS

/** All ways of walking paths. */
export const allWays = Object.keys(WAYS) as readonly Way[]

/** The option `ways`. */
export const SOME_WAYS: Kind = [
  value => Array.isArray(value) && value.length > 0 && value.every(way => allWays.includes(way)),
  `a list of some of these ways: ${allWays.map(way => `'${way}'`).join(', ')}`
]

/** What some ways need, as what loads it. */
interface Needs {
  readonly official: () => Promise<unknown>
  readonly sqlite: () => Promise<unknown>
}

const NEEDS: Needs = { official: () => import('./official-caller.ts'), sqlite: async () => driverOf(undefined) }

/** Which ways can be walked here, and what the others lack, as lines. */
export async function waysHere({ official, sqlite }: Needs = NEEDS): Promise<{ readonly ways: readonly Way[]; readonly lacks: readonly string[] }> {
  const [hasOfficial, hasSqlite] = await Promise.all([official, sqlite].map(load => load().then(() => true, () => false)))
  const lackOf = (way: Way): string | undefined => {
    const { disk, isOfficial }: Partial<Manner> = Object(WAYS[way])
    if (disk === 'SQLite' && !hasSqlite) return 'SQLite: npm install better-sqlite3'
    return isOfficial && !hasOfficial ? 'the official SDK: npm install --save-dev @a2a-js/sdk' : undefined
  }
  const lacks = allWays.flatMap(way => {
    const lack = lackOf(way)
    return lack === undefined ? [] : [`not walked: ${way}, which needs ${lack}`]
  })
  return { ways: allWays.filter(way => lackOf(way) === undefined), lacks }
}
