import type { Principal } from './access/authentication.ts'
import { AnswerRoom } from './access/answer-room.ts'
import type { CallScheduler } from './access/call-scheduler.ts'
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
import { namedHosts, namedOrigins } from './primitives/authority.ts'
import type { RuntimeOptions } from './runtime-options.ts'
import type { Counters } from './telemetry/counters.ts'

/** Settings for servers of a runtime. */
export interface Settings extends Pick<RuntimeOptions, 'authenticate' | 'origins' | 'publicUrl' | 'telemetry'> {
  /** `WWW-Authenticate` of refusals; only with `authenticate`. */
  readonly challenge?: string
  /** The names of `hosts`, with the ports for cards. */
  readonly hosts?: ReadonlyMap<string, number | undefined>
  /** Capabilities that are on; operations of the others are refused. */
  readonly capabilities: Capabilities
  readonly limits: Limits
  readonly logger: Logger
  readonly clock: Clock
  /** URIs of the extensions that clients may activate: taskchart's and the author's. */
  readonly extensions: readonly string[]
  /** Whether the agent has work, so that messages may open tasks. */
  readonly opensTasks: boolean
  /** Whether messages may be answered without a task. */
  readonly negotiates: boolean
  /** Whether tenants are configured, so that servers accept their names in paths. */
  readonly hasTenants: boolean
  /** Counts requests that a server refuses or ignores. Operations count their own calls. */
  readonly countStray: CountStray
  /** Counts what servers refuse, and their connections. */
  readonly counters: Counters
  /** Bytes of incomplete or unparsed messages, of all servers. */
  readonly unfinished: Shares
  /** Memory for large answers, of all servers. */
  readonly largeAnswers: AnswerRoom
  /** Fair scheduling of parsing, by the costs of `readingCost`, and of calls. */
  readonly scheduler: CallScheduler
  /** The sharer of a caller in the limit of connections. `tenant` is that of the connection's path, if any. */
  readonly sharerOf: (principal: Principal | undefined, tenant: string | undefined) => Sharer
}

/** The parts of a runtime for its settings. */
interface ServedParts extends Pick<
  Settings,
  'capabilities' | 'limits' | 'logger' | 'clock' | 'scheduler' | 'counters'
> {
  readonly extensions: Extensions
  readonly metering: Metering
  readonly tenants: Tenants
}

/** The settings of a runtime. Throws TypeError for invalid hosts and origins. */
export function settingsOf(
  { agent, authenticate, origins, hosts, publicUrl, telemetry }: RuntimeOptions,
  { capabilities, limits, logger, clock, extensions, metering, tenants, scheduler, counters }: ServedParts
): Settings {
  return {
    capabilities,
    limits,
    logger,
    clock,
    counters,
    extensions: extensions.supported,
    opensTasks: agent.work !== undefined,
    negotiates: agent.negotiate !== undefined,
    hasTenants: tenants.listed !== undefined,
    countStray: metering.stray,
    unfinished: unfinishedBytes(limits),
    scheduler,
    largeAnswers: new AnswerRoom(new Shares(limits.answerBytes, limits)),
    sharerOf: (principal, tenant) => tenants.sharerOf(principal, tenant),
    ...(authenticate && { authenticate, challenge: challengeOf(authenticate, agent.card) }),
    ...(origins && { origins: namedOrigins(origins) }),
    ...(hosts && { hosts: namedHosts(hosts) }),
    ...(publicUrl !== undefined && { publicUrl }),
    ...(telemetry && { telemetry })
  }
}
