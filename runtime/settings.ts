import type { Principal } from './access/authentication.ts'
import { AnswerRoom } from './access/answer-room.ts'
import type { CallTurns } from './access/call-turns.ts'
import type { Limits } from './access/limits.ts'
import type { CountStray, Metering } from './access/quotas.ts'
import { Shares, type Sharer } from './access/shares.ts'
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
  /** The room for large answers, of all servers. */
  readonly largeAnswers: AnswerRoom
  /** Turns to parse messages and bodies, by the costs of `readingCost`, and to begin calls. */
  readonly turns: CallTurns
  /** Whose share of the connections a caller uses, over a connection whose path names this tenant or none. */
  readonly sharerOf: (principal: Principal | undefined, tenant: string | undefined) => Sharer
}

/** The parts of a runtime that its servers look at. */
interface ServedParts extends Pick<Settings, 'capabilities' | 'limits' | 'logger' | 'clock' | 'turns'> {
  readonly extensions: Extensions
  readonly metering: Metering
  readonly tenants: Tenants
}

/** The settings of a runtime. Throws TypeError for hosts that are none. */
export function settingsOf(
  { agent, authenticate, origins, hosts, publicUrl, telemetry }: RuntimeOptions,
  { capabilities, limits, logger, clock, extensions, metering, tenants, turns }: ServedParts
): Settings {
  return {
    capabilities, limits, logger, clock, extensions: extensions.supported, opensTasks: agent.work !== undefined, hasTenants: tenants.listed !== undefined, countStray: metering.stray,
    unfinished: unfinishedBytes(limits), turns, largeAnswers: new AnswerRoom(new Shares(limits.answerBytes, limits)), sharerOf: (principal, tenant) => tenants.sharerOf(principal, tenant),
    ...(authenticate && { authenticate, challenge: challengeOf(authenticate, agent.card) }), ...(origins && { origins }), ...(hosts && { hosts: namedHosts(hosts) }),
    ...(publicUrl !== undefined && { publicUrl }), ...(telemetry && { telemetry })
  }
}
