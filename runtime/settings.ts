import type { Principal } from './access/authentication.ts'
import { FairQueue, READING } from './access/fair-queue.ts'
import type { Limits } from './access/limits.ts'
import type { CountStray, Metering } from './access/quotas.ts'
import type { Sharer, Shares } from './access/shares.ts'
import type { Tenants } from './access/tenants.ts'
import { unfinishedBytes } from './access/unfinished-bytes.ts'
import { challengeOf } from './agent/agent-card.ts'
import type { Capabilities } from './agent/capabilities.ts'
import type { Extensions } from './authoring/extensions.ts'
import type { Clock } from './ports/clock.ts'
import type { Logger } from './ports/logger.ts'
import { namedHosts } from './primitives/authority.ts'
import type { RuntimeOptions } from './runtime-options.ts'

/** What servers of a runtime keep to. */
export interface Settings extends Pick<RuntimeOptions, 'authenticate' | 'origins' | 'publicUrl' | 'telemetry'> {
  /** The `WWW-Authenticate` of refusals, where there is `authenticate`. */
  readonly challenge?: string
  /** The names of `hosts`, with the ports that cards give. */
  readonly hosts?: ReadonlyMap<string, number | undefined>
  /** Which capabilities are offered; operations of the others are refused. */
  readonly capabilities: Capabilities
  readonly limits: Limits
  readonly logger: Logger
  readonly clock: Clock
  /** URIs of the extensions that clients may activate: ours and the author's. */
  readonly extensions: readonly string[]
  /** Whether the agent has work, so that its messages may lead to tasks. */
  readonly opensTasks: boolean
  /** Whether tenants are configured, so that servers take their names in paths. */
  readonly hasTenants: boolean
  /** Counts what a server refuses or ignores without calling an operation. The operations count what calls them. */
  readonly countStray: CountStray
  /** The bytes of messages that are not complete or not parsed, of all servers. */
  readonly unfinished: Shares
  /** Turns to parse messages and bodies, by the costs of `readingCost`. */
  readonly reading: FairQueue
  /** Whose share of the connections a caller uses, over a connection whose path names this tenant or none. */
  readonly sharerOf: (principal: Principal | undefined, tenant: string | undefined) => Sharer
}

/** The parts of a runtime that its servers look at. */
interface ServedParts extends Pick<Settings, 'capabilities' | 'limits' | 'logger' | 'clock'> {
  readonly extensions: Extensions
  readonly metering: Metering
  readonly tenants: Tenants
}

/** The settings of a runtime. Throws TypeError for hosts that are none. */
export function settingsOf(
  { agent, authenticate, origins, hosts, publicUrl, telemetry }: RuntimeOptions,
  { capabilities, limits, logger, clock, extensions, metering, tenants }: ServedParts
): Settings {
  return {
    capabilities, limits, logger, clock, extensions: extensions.supported, opensTasks: agent.work !== undefined, hasTenants: tenants.listed !== undefined, countStray: metering.stray,
    unfinished: unfinishedBytes(limits), reading: new FairQueue(READING), sharerOf: (principal, tenant) => tenants.sharerOf(principal, tenant),
    ...(authenticate && { authenticate, challenge: challengeOf(authenticate, agent.card) }), ...(origins && { origins }), ...(hosts && { hosts: namedHosts(hosts) }),
    ...(publicUrl !== undefined && { publicUrl }), ...(telemetry && { telemetry })
  }
}
