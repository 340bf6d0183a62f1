import { isObject } from '../machines/protocol/codec/json.ts'
import type { Authenticate, Authorize, Principal } from './access/authentication.ts'
import type { CountRejected } from './access/call-context.ts'
import type { CallScheduler } from './access/call-scheduler.ts'
import type { LimitChanges, Limits } from './access/limits.ts'
import type { Metering } from './access/quotas.ts'
import { AnswerBudget, type Owner, SharedLimit, unfinishedBytes } from './access/shares.ts'
import type { TenantOptions, Tenants } from './access/tenants.ts'
import { challengeOf } from './agent/agent-card.ts'
import type { Capabilities } from './agent/capabilities.ts'
import type { Agent } from './agent/define-agent.ts'
import type { SignCard } from './agent/signed-cards.ts'
import type { Extensions } from './authoring/extensions.ts'
import type { Cluster } from './operations/cluster.ts'
import type { Clock } from './ports/clock.ts'
import type { Ids } from './ports/ids.ts'
import type { Logger } from './ports/logger.ts'
import type { WebhookSender } from './ports/webhook-sender.ts'
import { namedHosts, namedOrigins } from './primitives/authority.ts'
import {
  A_CLOCK,
  A_LOGGER,
  checkOptions,
  functionFor,
  kindOf,
  objectSuchAs,
  type OptionKinds,
  textsSuchAs,
  textSuchAs,
  TRUE_OR_FALSE,
  withMethods,
  A_TELEMETRY
} from './primitives/options.ts'
import type { Retention } from './store/retention.ts'
import type { Store } from './store/store.ts'
import type { Counters } from './telemetry/counters.ts'
import type { Telemetry } from './telemetry/telemetry.ts'

/** Options of a runtime. Only `agent` is required. */
export interface RuntimeOptions {
  readonly agent: Agent
  /** Default a store in memory. */
  readonly store?: Store
  readonly clock?: Clock
  readonly ids?: Ids
  readonly logger?: Logger
  /** Changes of limits; others keep their defaults. */
  readonly limits?: LimitChanges
  /** Changes of the retention of old data; others keep their defaults. */
  readonly retention?: Partial<Retention>
  /**
   * Deduplicates messages: a resent message with the same messageId gets the answer of the first. Default: only for
   * clients that activate the reliability extension, because others may use one messageId for many messages.
   */
  readonly dedupe?: boolean
  /** Identifies callers. Without it every caller is `anonymous`, and servers listen on loopback addresses only. */
  readonly authenticate?: Authenticate
  /** Decides whether a caller may run an operation. Default: every operation is allowed, on the caller's own data. */
  readonly authorize?: Authorize
  /** Tenants and their members. Default: every name is a tenant that all callers may use, each with its own data. */
  readonly tenants?: TenantOptions
  /**
   * Origins whose pages may connect: `https://app.example`, or `loopback` for all pages of this machine. Default: only
   * the server's own.
   */
  readonly origins?: readonly string[]
  /**
   * Hosts that requests may name, as `NAME[:PORT]`; the card has PORT, else the server's port. Default: loopback names
   * on a loopback address, any on others.
   */
  readonly hosts?: readonly string[]
  /** The URL for the card, if it is not the server's own, for example behind a proxy. Takes precedence over `hosts`. */
  readonly publicUrl?: string
  /**
   * Signs the card and extended cards, each once: `cardSigner({ key })` of `taskchart/auth`. Default: cards are not
   * signed.
   */
  readonly signCard?: SignCard
  /**
   * Posts updates of tasks to webhooks: `webhooks()` of `taskchart/http`. Default: push notifications are not offered.
   */
  readonly push?: WebhookSender
  /** The cluster whose node the runtime is. Default: it has the store alone. */
  readonly cluster?: Cluster
  /** Traces operations and work: `openTelemetry()` of `taskchart/opentelemetry`. Default: no tracing. */
  readonly telemetry?: Telemetry
  /**
   * Evaluates properties on the updates that clients get: rules of A2A, and those of the agent's `properties` whose
   * terms are all about updates. Violations are counted in the metrics and logged; they change no task. Default false.
   */
  readonly observeProperties?: boolean
}

const OPTIONS: OptionKinds<RuntimeOptions> = {
  agent: [isAgent, 'what defineAgent gives: createRuntime({ agent: defineAgent({ card, work }) })'],
  store: withMethods(['commit', 'loadContext', 'readTask'], 'a store, such as sqliteStore(file) of taskchart/store'),
  clock: A_CLOCK,
  ids: functionFor('a function that gives a new id at each call'),
  logger: A_LOGGER,
  limits: objectSuchAs('{ tasksPerContext: 100 }'),
  retention: objectSuchAs('{ endedTasksMs: 86_400_000 }'),
  dedupe: TRUE_OR_FALSE,
  authenticate: functionFor('a function that identifies the caller: ({ headers }) => ({ id })'),
  authorize: functionFor('a function that decides who may call: ({ operation, principal, claims }) => true'),
  tenants: objectSuchAs("{ acme: { members: ['alice'] } }"),
  origins: textsSuchAs("['https://app.example']"),
  hosts: textsSuchAs("['agent.example']"),
  publicUrl: textSuchAs("'https://agent.example/'"),
  signCard: functionFor('a function that signs a card: cardSigner({ key }) of taskchart/auth'),
  push: withMethods(['faultOf', 'post'], 'a sender of webhooks: webhooks() of taskchart/http'),
  cluster: withMethods(['join'], 'a cluster, with the method join'),
  telemetry: A_TELEMETRY,
  observeProperties: TRUE_OR_FALSE
}

/** What to write for options that are those of the command, or of another function. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  db: "store: sqliteStore('agent.db'), of taskchart/store, or store: await postgresStore('postgres://…'), of taskchart/postgres",
  port: 'serve(runtime, { port }), of taskchart/http',
  host: 'serve(runtime, { host }), of taskchart/http',
  card: 'agent: defineAgent({ card, work })',
  work: 'agent: defineAgent({ card, work })'
}

/** Validates the names and kinds of the options of `createRuntime`. Throws TypeError that says what to write. */
export function checkRuntimeOptions(options: unknown): void {
  if (isAgent(options)) throw new TypeError('createRuntime takes the agent as an option: createRuntime({ agent }).')
  const misplaced = isObject(options) ? Object.keys(options).find(name => Object.hasOwn(ELSEWHERE, name)) : undefined
  if (misplaced !== undefined) throw new TypeError(`createRuntime has no ${misplaced}. Write ${ELSEWHERE[misplaced]}.`)
  checkOptions(options, OPTIONS, 'createRuntime', 'createRuntime({ agent })')
  if (isObject(options) && options['agent'] === undefined)
    throw new TypeError('agent is missing: createRuntime({ agent: defineAgent({ card, work }) }).')
}

/** Throws TypeError for a value that is no runtime, with what to write. */
export function checkRuntime(given: unknown, taker: string): void {
  if (isObject(given) && typeof given['sendMessage'] === 'function' && isObject(given['settings'])) return
  throw new TypeError(
    `${taker} takes a runtime, not ${isAgent(given) ? 'an agent' : kindOf(given)}: ${taker}(createRuntime({ agent })).`
  )
}

/** Throws TypeError for a value that is no agent, with what to write. */
export function checkAgent(given: unknown, taker: string): void {
  if (!isAgent(given))
    throw new TypeError(
      `${taker} takes what defineAgent gives, not ${kindOf(given)}: ${taker}(defineAgent({ card, work })).`
    )
}

/** Whether a value is an agent, including one from another copy of this package. */
function isAgent(given: unknown): given is Agent {
  return isObject(given) && isObject(given['card']) && isObject(given['restart']) && Array.isArray(given['extensions'])
}

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
  readonly countRejected: CountRejected
  /** Counts refusals and connections of servers. */
  readonly counters: Counters
  /** Bytes of incomplete or unparsed messages, of all servers. */
  readonly unfinished: SharedLimit
  /** Memory for large answers, of all servers. */
  readonly largeAnswers: AnswerBudget
  /** Fair scheduling of parsing, by the costs of `readingCost`, and of calls. */
  readonly scheduler: CallScheduler
  /** The owner of a connection in the limit of connections. `tenant` is that of the connection's path, if any. */
  readonly ownerOf: (principal: Principal | undefined, tenant: string | undefined) => Owner
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
    countRejected: metering.countRejected,
    unfinished: unfinishedBytes(limits),
    scheduler,
    largeAnswers: new AnswerBudget(new SharedLimit(limits.answerBytes, limits)),
    ownerOf: (principal, tenant) => tenants.ownerOf(principal, tenant),
    ...(authenticate && { authenticate, challenge: challengeOf(authenticate, agent.card) }),
    ...(origins && { origins: namedOrigins(origins) }),
    ...(hosts && { hosts: namedHosts(hosts) }),
    ...(publicUrl !== undefined && { publicUrl }),
    ...(telemetry && { telemetry })
  }
}
