import type { Principal } from './access/authentication.ts'
import type { FairQueue } from './access/fair-queue.ts'
import type { Limits } from './access/limits.ts'
import type { CountStray } from './access/quotas.ts'
import type { Sharer, Shares } from './access/shares.ts'
import type { Capabilities } from './agent/capabilities.ts'
import type { Clock } from './ports/clock.ts'
import type { Logger } from './ports/logger.ts'
import type { RuntimeOptions } from './runtime.ts'

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
