import type { AgentCard, AgentInterface } from '../machines/protocol/card.ts'
import { isObject, type JsonLimits, type JsonValue } from '../machines/protocol/codec/json.ts'
import type { Task } from '../machines/protocol/objects.ts'
import type {
  OperationName,
  OperationRequests,
  OperationResults,
  StreamingName
} from '../machines/protocol/operations.ts'
import { NATIVE_VERSIONS, type NativeVersion, PROTOCOL_VERSION } from '../machines/protocol/versions.ts'
import type { Authenticate, Authorize, Principal } from './access/authentication.ts'
import type { CallContext } from './access/call-context.ts'
import type { CallScheduler } from './access/call-scheduler.ts'
import type { LimitChanges, Limits } from './access/limits.ts'
import { type Metering, RejectedRequests } from './access/quotas.ts'
import { AnswerBudget, type Owner, SharedLimit, unfinishedBytes } from './access/shares.ts'
import type { TenantOptions, Tenants } from './access/tenants.ts'
import { challengeOf } from './agent/agent-card.ts'
import type { Capabilities } from './agent/capabilities.ts'
import type { Agent } from './agent/define-agent.ts'
import type { SignCard } from './agent/signed-cards.ts'
import type { Extensions } from './authoring/work-arguments.ts'
import type { Observation, Observer } from './contexts/observers.ts'
import type { LocalModules } from './definitions/agent-outline.ts'
import type { Cluster } from './operations/cluster.ts'
import type { KeyEntry } from './operations/keyed-messages.ts'
import type { NoteChange } from './operations/notes.ts'
import type { DataToErase } from './operations/tasks.ts'
import type { Clock } from './ports/clock.ts'
import type { Ids } from './ports/ids.ts'
import type { Logger } from './ports/logger.ts'
import type { WebhookBodyWriter, WebhookSender } from './ports/webhook-sender.ts'
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
import type { Health } from './runtime-metrics.ts'
import { retentionWith, type Retention } from './store/retention.ts'
import type { Scope } from './store/rows.ts'
import type { Store } from './store/store.ts'
import type { HistoryReader } from './streams/task-stream.ts'
import type { Counters, MetricSource } from './telemetry/counters.ts'
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
  readonly deduplicate?: boolean
  /**
   * The versions of A2A: `['1.0', '1.1']` adds 1.1, in which tasks have generations and a timeline. Experimental: 1.1
   * is a draft, and what it adds may change with it. Default `['1.0']`.
   */
  readonly versions?: readonly NativeVersion[]
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
  /** Traces operations and work: `openTelemetry()` of `taskchart/opentelemetry`. Default: no tracing. */
  readonly telemetry?: Telemetry
  /**
   * Evaluates properties on the updates that clients get: rules of A2A, and those of the agent's `properties` whose
   * terms are all about updates. Violations are counted in the metrics and logged; they change no task. Default false.
   */
  readonly observeProperties?: boolean
}

/** Options of a runtime of `taskchart serve`. */
export interface NodeRuntimeOptions extends RuntimeOptions {
  /** Gives the local modules of the agent as they were loaded, for its stored definition. Default: they are not seen. */
  readonly localModules?: () => LocalModules
  /** The cluster whose node the runtime is. Default: it has the store alone. */
  readonly cluster?: Cluster
}

const OPTIONS: OptionKinds<NodeRuntimeOptions> = {
  agent: [isAgent, 'what defineAgent gives: createRuntime({ agent: defineAgent({ card, work }) })'],
  store: withMethods(['commit', 'loadContext', 'readTask'], 'a store, such as sqliteStore(file) of taskchart/store'),
  clock: A_CLOCK,
  ids: functionFor('a function that gives a new id at each call'),
  logger: A_LOGGER,
  limits: objectSuchAs('{ tasksPerContext: 100 }'),
  retention: objectSuchAs('{ endedTasksMs: 86_400_000 }'),
  deduplicate: TRUE_OR_FALSE,
  versions: [isVersions, "['1.0'] or ['1.0', '1.1']"],
  authenticate: functionFor('a function that identifies the caller: ({ headers }) => ({ id })'),
  authorize: functionFor('a function that decides who may call: ({ operation, principal, claims }) => true'),
  tenants: objectSuchAs("{ acme: { members: ['alice'] } }"),
  origins: textsSuchAs("['https://app.example']"),
  hosts: textsSuchAs("['agent.example']"),
  publicUrl: textSuchAs("'https://agent.example/'"),
  signCard: functionFor('a function that signs a card: cardSigner({ key }) of taskchart/auth'),
  push: withMethods(['faultOf', 'post'], 'a sender of webhooks: webhooks() of taskchart/http'),
  cluster: withMethods(['join'], 'a cluster, with the method join'),
  localModules: functionFor('a function that gives the local modules of the agent'),
  telemetry: A_TELEMETRY,
  observeProperties: TRUE_OR_FALSE
}

/** The right place of an option that belongs to the command or to another function, in words for an error. */
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

/** A runtime as its servers see it. Throws TypeError for a value that is no runtime, with what to write. */
export function servedRuntime(given: unknown, taker: string): ServedRuntime {
  if (isObject(given) && typeof given['sendMessage'] === 'function' && isObject(given['settings']))
    return given as unknown as ServedRuntime
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

type RuntimeOperations = {
  [Name in OperationName]: (
    params: OperationRequests[Name],
    call?: CallContext
  ) => Name extends StreamingName
    ? AsyncGenerator<OperationResults[Name], void, undefined>
    : Promise<OperationResults[Name]>
}

/**
 * A running agent, with one method for each operation of A2A (§3.1). Each validates its parameters, which are wire
 * JSON, and answers with wire JSON or a stream of it. Errors are `A2AError`s.
 */
export interface Runtime extends RuntimeOperations {
  /**
   * Delivers an out-of-band authorization to a task that waits for one (§7.6). `data` is any JSON value for its work.
   * It is stored until the task has ended, so pass a reference rather than a secret. Throws UnsupportedOperation if the
   * task waits for no authorization, InvalidParams if the data is invalid.
   */
  authorized(taskId: string, data: unknown, call?: CallContext): Promise<Task>
  /** Whether the runtime can serve calls now: what `/readyz` of its servers answers. Reads memory only. */
  health(): Health
  /**
   * Counters and gauges of the runtime and its servers, for `metricsText` of `taskchart/http` or an exporter of
   * yours.
   */
  readonly metrics: MetricSource
  /**
   * Erases everything of a context, or of a principal without `contextId`; `false` if there was nothing. Live tasks
   * stop first, as if canceled: open streams and waiting calls end with TaskNotFound. During the erasure, requests for
   * the data wait, and requests for a new context of the principal are refused with Overloaded. If the store fails, it
   * rejects, and the tasks resume.
   */
  erase(data: DataToErase): Promise<boolean>
  /**
   * Adds an observer, which is called for each context in memory, then for each that enters or leaves memory, and for
   * all commits. It is for inspectors, and costs nothing without observers.
   */
  observe(observer: Observer): Observation
  /** Resolves when everything decided so far is committed and published. Servers wait for it before they close. */
  settled(): Promise<void>
  /** Stops the actors and closes the store. Waiting calls and open streams end with Overloaded. May be called twice. */
  close(): Promise<void>
}

/** A runtime as its servers see it. Every runtime is one; the members that are added here are not for users. */
export interface ServedRuntime extends Runtime {
  /**
   * Finds what a caller's own key for a task refers to (`CallContext.key`): its newest task, the agent's answer without
   * a task, or that there is no answer yet; `undefined` for an unknown key. Does not call `authorize`.
   */
  findByKey(name: string, call?: CallContext): Promise<KeyEntry | undefined>
  /**
   * Reads a note of an adapter: a JSON value by its name, in the scope of the call; `undefined` if there is none. Use it
   * only for what another operation has given to the caller, because it does not call `authorize`.
   */
  readNote(name: string, call: CallContext): Promise<JsonValue | undefined>
  /**
   * Writes a note by the writer of its context, if the note still has the value on which the change is based. Gives the
   * value that is stored then. Does not call `authorize`.
   */
  writeNote(change: NoteChange, call: CallContext): Promise<JsonValue>
  /**
   * Reads what came before a task or an answer: earlier tasks and messages. Use it only for what another operation has
   * given to the caller, because it does not call `authorize`.
   */
  readHistory<T>(call: CallContext, read: (store: HistoryReader, scope: Scope) => Promise<T>): Promise<T>
  /**
   * The agent's card (§4.4.1) for a server with these interfaces: for all listed tenants, or for one, even if that does
   * not exist.
   */
  agentCard(interfaces: readonly AgentInterface[], tenant?: string): AgentCard
  /**
   * The agent's card, changed by `change`, then signed if the runtime signs cards. Rejects with InternalError if that
   * fails.
   */
  signedCard(
    interfaces: readonly AgentInterface[],
    tenant?: string,
    change?: (card: AgentCard) => AgentCard
  ): Promise<AgentCard>
  /**
   * Sets the writer for webhooks that were registered in an older version of A2A. Adapters for older versions call it.
   */
  writesWebhooks(version: string, writing: WebhookBodyWriter): void
  /** Settings for servers of this runtime. */
  readonly settings: Settings
}

function isVersions(given: unknown): boolean {
  return (
    Array.isArray(given) &&
    given.includes(PROTOCOL_VERSION) &&
    given.every(version => NATIVE_VERSIONS.includes(version))
  )
}

/** Settings for servers of a runtime. */
export interface Settings extends Pick<RuntimeOptions, 'authenticate' | 'origins' | 'publicUrl' | 'telemetry'> {
  /** `WWW-Authenticate` of refusals; only with `authenticate`. */
  readonly challenge?: string
  /** The versions of A2A that the runtime speaks, the newest first. */
  readonly versions: readonly NativeVersion[]
  /** The names of `hosts`, with the ports for cards. */
  readonly hosts?: ReadonlyMap<string, number | undefined>
  /** How long a task is stored after its end, in milliseconds; Infinity for ever. */
  readonly endedTasksMs: number
  /** Capabilities that are on; operations of the others are refused. */
  readonly capabilities: Capabilities
  readonly limits: Limits
  /** The limits that bound the JSON of a request. */
  readonly jsonLimits: JsonLimits
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
  readonly rejected: RejectedRequests
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
  {
    agent,
    authenticate,
    origins,
    hosts,
    publicUrl,
    telemetry,
    retention,
    versions = [PROTOCOL_VERSION]
  }: RuntimeOptions,
  { capabilities, limits, logger, clock, extensions, metering, tenants, scheduler, counters }: ServedParts
): Settings {
  return {
    capabilities,
    limits,
    jsonLimits: { depth: limits.jsonDepth, nodes: limits.jsonNodes },
    logger,
    clock,
    counters,
    extensions: extensions.supported,
    versions: NATIVE_VERSIONS.filter(version => versions.includes(version)),
    endedTasksMs: retentionWith(retention).endedTasksMs,
    opensTasks: agent.work !== undefined,
    negotiates: agent.negotiate !== undefined,
    hasTenants: tenants.listed !== undefined,
    rejected: new RejectedRequests(metering, counters),
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
