import { isObject } from '../machines/protocol/codec/json.ts'
import type { Authenticate } from './access/authentication.ts'
import type { Authorize } from './access/authorization.ts'
import type { LimitChanges } from './access/limits.ts'
import type { TenantOptions } from './access/tenants.ts'
import type { Agent } from './agent/define-agent.ts'
import type { SignCard } from './agent/signed-cards.ts'
import type { Clock } from './ports/clock.ts'
import type { Ids } from './ports/ids.ts'
import type { Logger } from './ports/logger.ts'
import type { WebhookSender } from './ports/webhook-sender.ts'
import { A_CLOCK, A_LOGGER, checkOptions, functionFor, kindOf, objectSuchAs, textsSuchAs, textSuchAs, TRUE_OR_FALSE, withMethods, type OptionKinds } from './primitives/options.ts'
import type { Retention } from './store/retention.ts'
import type { Store } from './store/store.ts'
import { A_TELEMETRY, type Telemetry } from './telemetry/telemetry.ts'

/** What a runtime is made of. Only `agent` has to be given. */
export interface RuntimeOptions {
  readonly agent: Agent
  /** Default `memoryStore()`. */
  readonly store?: Store
  readonly clock?: Clock
  readonly ids?: Ids
  readonly logger?: Logger
  /** Changes single limits; the others keep their defaults. */
  readonly limits?: LimitChanges
  /** Changes how long what is over is kept; what is left out keeps its default. */
  readonly retention?: Partial<Retention>
  /**
   * Takes no message twice: the same message under the same messageId gets the answer of the first. Default only for
   * clients that activate the reliability extension, since others use one messageId for many messages.
   */
  readonly dedupe?: boolean
  /** Tells who calls. Without it every caller is `anonymous`, and servers bind loopback addresses only. */
  readonly authenticate?: Authenticate
  /** Says who may do what. Default: everybody everything, with what is its own. */
  readonly authorize?: Authorize
  /** Which tenants there are, and who may use which. Default: every name is one, and everybody may use it, with what is its own. */
  readonly tenants?: TenantOptions
  /** Origins whose pages may connect (`https://app.example`). Default none but the server's own. */
  readonly origins?: readonly string[]
  /** Hosts that requests may name, as `NAME[:PORT]`; the card gives PORT, else the port listened on. Default: loopback names on a loopback address, any on others. */
  readonly hosts?: readonly string[]
  /** The address that the card gives, where it is not the one that the server listens on: behind a proxy, say. Comes before `hosts`. */
  readonly publicUrl?: string
  /** Signs the card and extended cards that servers give, each once: `cardSigner({ key })` of `taskchart/cards`. Default: they have no signature. */
  readonly signCard?: SignCard
  /** Tells webhooks of the updates of tasks: `webhooks()` of `taskchart/push`. Default: push notifications are not offered. */
  readonly push?: WebhookSender
  /** Traces the operations and works: `openTelemetry()` of `taskchart/opentelemetry`. Default: nothing is traced. */
  readonly telemetry?: Telemetry
}

const OPTIONS: OptionKinds<RuntimeOptions> = {
  agent: [isAgent, 'what defineAgent gives: createRuntime({ agent: defineAgent({ card, work }) })'],
  store: withMethods(['commit', 'loadContext', 'readTask'], 'a store: memoryStore(), or sqliteStore(file) of taskchart/sqlite'),
  clock: A_CLOCK,
  ids: functionFor('a function that gives another id at each call'),
  logger: A_LOGGER,
  limits: objectSuchAs('{ tasksPerContext: 100 }'),
  retention: objectSuchAs('{ endedTasksMs: 86_400_000 }'),
  dedupe: TRUE_OR_FALSE,
  authenticate: functionFor('a function that tells who calls: ({ headers }) => ({ id })'),
  authorize: functionFor('a function that says who may: ({ operation, principal, claims }) => true'),
  tenants: objectSuchAs("{ acme: { members: ['alice'] } }"),
  origins: textsSuchAs("['https://app.example']"),
  hosts: textsSuchAs("['agent.example']"),
  publicUrl: textSuchAs("'https://agent.example/'"),
  signCard: functionFor('a function that signs a card: cardSigner({ key }) of taskchart/cards'),
  push: withMethods(['faultOf', 'post'], 'what sends to webhooks: webhooks() of taskchart/push'),
  telemetry: A_TELEMETRY
}

/** Checks the options of `createRuntime`, but for what their values hold. Throws TypeError that says what to write. */
export function checkRuntimeOptions(options: unknown): void {
  if (isAgent(options)) throw new TypeError('createRuntime takes the agent as an option: createRuntime({ agent }).')
  checkOptions(options, OPTIONS, 'createRuntime', 'createRuntime({ agent })')
  if (isObject(options) && options['agent'] === undefined) throw new TypeError('agent is missing: createRuntime({ agent: defineAgent({ card, work }) }).')
}

/** Checks what a function that serves a runtime is given. Throws TypeError for what is none, with what to write. */
export function checkRuntime(given: unknown, taker: string): void {
  if (isObject(given) && typeof given['sendMessage'] === 'function' && isObject(given['settings'])) return
  throw new TypeError(`${taker} takes a runtime, not ${isAgent(given) ? 'an agent' : kindOf(given)}: ${taker}(createRuntime({ agent })).`)
}

/** Checks what a function that tests an agent is given. Throws TypeError for what is none, with what to write. */
export function checkAgent(given: unknown, taker: string): void {
  if (!isAgent(given)) throw new TypeError(`${taker} takes what defineAgent gives, not ${kindOf(given)}: ${taker}(defineAgent({ card, work })).`)
}

/** Whether this is an agent; it may have been made by another copy of this package. */
function isAgent(given: unknown): given is Agent {
  return isObject(given) && isObject(given['card']) && isObject(given['restart']) && Array.isArray(given['extensions'])
}
