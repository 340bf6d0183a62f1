import type { AnyActorLogic, AnyActorScope, AnyStateMachine } from 'xstate'
import type { AgentExtension } from '../../machines/protocol/card.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { RestartPolicy } from '../../machines/supervision.ts'
import { declaredExtensions } from '../authoring/extensions.ts'
import { shownInput } from '../authoring/input-schema.ts'
import type { WorkInput } from '../authoring/work-arguments.ts'
import { isNegotiation, type Negotiation } from '../negotiation/negotiation.ts'
import type { NegotiateFunction } from '../negotiation/per-message.ts'
import type { StandardSchema } from '../ports/standard-schema.ts'
import { rejectUnknown } from '../primitives/options.ts'
import type { Migrate } from '../snapshots/migration.ts'
import type { WorkFunction, WorkGenerator } from '../work/function-work.ts'
import { isMachine } from '../xstate/persisted-snapshot.ts'
import { checkCapabilities, type CapabilityChoices } from './capabilities.ts'
import { checkChart, warnOfChart } from './chart-check.ts'
import { describedCard, type AgentDescription, type DescribedCard, type ExtendedCard } from './described-card.ts'
import { recoveryPolicy, restartPolicy, type MessagePolicy, type RecoveryType, type RestartOption } from './policies.ts'

/** A statechart as work: one whose `input`, if it is typed, is what the agent's schema gives. */
export type WorkChart<Input = unknown> = AnyStateMachine & { getInitialSnapshot(scope: AnyActorScope, input?: WorkInput<Input>): unknown }

/**
 * An agent as its author writes it: with `work` it does tasks, with `negotiate` it answers messages, with both it negotiates
 * first, about `Terms`. `Input` is what its `input` schema gives.
 */
export interface AgentDefinition<Input = unknown, Terms = Record<string, unknown> | undefined> {
  readonly card: AgentDescription
  /** What the card says beside or in place of that to callers who have shown who they are, or a function of the caller that tells it. */
  readonly extendedCard?: ExtendedCard
  /** Capabilities that the agent does not offer, such as `{ streaming: false }`. Default: all that can be served. */
  readonly capabilities?: CapabilityChoices
  /**
   * Extensions of the protocol that the agent supports (§4.6) beside ours, by URIs of their own. Work and negotiation hear
   * which of them a client has activated; who does not declare one that is `required` is refused whatever it asks for.
   */
  readonly extensions?: readonly AgentExtension[]
  /**
   * What the message that opens a task has to hold: the value of its first data part, or else its text, is what this schema
   * takes. Any other is refused with InvalidParams that names the field, and no task is opened; where there is `negotiate`,
   * after that has accepted. The work gets the value as the schema gives it, as `input`; clients see the schema on the card,
   * as an extension (`urn:taskchart:extension:input:1`).
   */
  readonly input?: StandardSchema<Input>
  /** What the card shows of that schema, as JSON Schema of 16 KiB at the most. Default: what the schema's library gives. */
  readonly inputJsonSchema?: Record<string, unknown>
  /** What does a task: a function, an async generator, or a statechart made with `setupWork`. */
  readonly work?: WorkFunction<NoInfer<Input>, NoInfer<Terms>> | WorkGenerator<NoInfer<Input>, NoInfer<Terms>> | WorkChart<NoInfer<Input>>
  /**
   * What answers a message that addresses no task: a function, called for each by itself, or a `negotiation(…)`, which holds
   * an offer from one message to the next. Without it every such message opens a task.
   */
  readonly negotiate?: NegotiateFunction<Terms> | Negotiation<Terms>
  /**
   * What becomes of a message to a task that works: `reject` (the default) refuses it; `steer` delivers it, if and only if
   * the work is a statechart that can take it; `queue` keeps it for the work's next question, which is then not asked.
   */
  readonly messages?: MessagePolicy
  /**
   * Whether work that crashes starts again: `temporary` (the default) never, `transient` always, but only `intensity`
   * times within `periodMs`; one crash more fails the task. Default intensity and period, as OTP's: once within 5,000 ms.
   */
  readonly restart?: RestartOption
  /**
   * What becomes of work that was at work when its process ended: `resume` (the default of statecharts), `rerun` (that of
   * functions and generators) or `fail`. Work that takes its process with it each time is given up after
   * `limits.recoveries` times without progress.
   */
  readonly recovery?: RecoveryType
  /** The version of the work, which is stored with each task. Default: that of the card. */
  readonly version?: string
  /**
   * Makes of a statechart that another version has stored a snapshot that this one can go on from. Called without anything
   * else of the runtime, once or more often for a task; if it throws, that task fails. Without it the stored chart goes on
   * if it fits this one.
   */
  readonly migrate?: Migrate
  /** How long work may clean up once its task has ended before it did, in milliseconds. Default 5,000. */
  readonly cancelGraceMs?: number
  /**
   * How long a task's work may take, in milliseconds, questions and restarts of the process included: a task that has not
   * ended by then fails, and its work stops. Default: as long as it likes.
   */
  readonly deadlineMs?: number
}

/** An agent that a runtime can serve: checked, with its defaults filled in. */
export interface Agent extends AgentDefinition {
  readonly card: DescribedCard
  readonly work?: WorkFunction | WorkGenerator | AnyStateMachine
  readonly extensions: readonly AgentExtension[]
  readonly messages: MessagePolicy
  readonly restart: RestartPolicy
  readonly recovery: RecoveryType
  readonly version: string
  readonly cancelGraceMs: number
}

/** Every member of a definition. */
const MEMBERS = Object.keys({
  card: true, extendedCard: true, capabilities: true, extensions: true, input: true, inputJsonSchema: true, work: true, negotiate: true, messages: true,
  restart: true, recovery: true, version: true, migrate: true, cancelGraceMs: true, deadlineMs: true
} satisfies Record<keyof AgentDefinition, true>)

/** Checks an agent's definition. Throws TypeError or RangeError that says what to write instead. */
export function defineAgent<Input = undefined, Terms = Record<string, unknown> | undefined>(given: AgentDefinition<Input, Terms>): Agent {
  // Which input and terms its work takes only the author's types know.
  const definition = given as AgentDefinition
  rejectUnknown(definition, MEMBERS, 'defineAgent')
  const { input, inputJsonSchema } = definition
  const { card, extendedCard, capabilities, extensions = [], work, negotiate, messages = 'reject', restart, recovery, migrate, cancelGraceMs = 5000, deadlineMs } = definition
  if (!work && !negotiate) throw new TypeError('An agent needs work, negotiate or both: defineAgent({ card, work: async ({ message }) => … }).')
  if (work && !isMachineOrFunction(work)) throw new TypeError('work has to be an async function, an async generator, or a statechart made with setupWork(…).createMachine(…).')
  if (work && typeof work !== 'function') checkChart(work)
  if (negotiate) checkNegotiate(negotiate, work)
  checkMessages(messages, work)
  if (typeof cancelGraceMs !== 'number' || !(cancelGraceMs >= 0)) throw new RangeError(`cancelGraceMs has to be milliseconds from 0, not ${String(cancelGraceMs)}.`)
  if (deadlineMs !== undefined && !(Number.isFinite(deadlineMs) && deadlineMs > 0)) throw new RangeError(`deadlineMs has to be milliseconds above 0, not ${String(deadlineMs)}.`)
  const isChart = work !== undefined && typeof work !== 'function'
  const policies = { messages, restart: restartPolicy(restart), recovery: recoveryPolicy(recovery, isChart), cancelGraceMs, ...(deadlineMs !== undefined && { deadlineMs }) }
  const described = describedCard(card)
  checkExtendedCard(extendedCard, described)
  if (capabilities !== undefined) checkCapabilities(capabilities, { extendedCard, negotiates: isNegotiation(negotiate) })
  const said = { card: described, extensions: declaredExtensions(extensions), ...(extendedCard && { extendedCard }), ...(capabilities && { capabilities }) }
  const { version = described.version } = definition
  if (input && isNegotiation(negotiate)) throw new TypeError('What opens the task of a negotiation is its deal: have terms say what the work needs, and leave input out.')
  if (input && !work) throw new TypeError('input is what opens a task: an agent without work opens none. Give it work, or leave input out.')
  shownInput({ input, inputJsonSchema })
  if (work && typeof work !== 'function') warnOfChart(work)
  checkVersions({ version, migrate }, isChart)
  return { ...said, ...(work && { work }), ...(negotiate && { negotiate }), ...policies, version, ...(migrate && { migrate }), ...(input && { input }), ...(inputJsonSchema && { inputJsonSchema }) }
}

function checkVersions({ version, migrate }: { readonly version: unknown; readonly migrate: unknown }, isChart: boolean): void {
  if (typeof version !== 'string' || version === '') throw new TypeError(`version has to be a text such as '2.1.0', not ${JSON.stringify(version)}.`)
  if (migrate === undefined) return
  if (typeof migrate !== 'function') throw new TypeError('migrate has to be a function: ({ version, snapshot }) => the snapshot as the present chart restores it.')
  if (!isChart) throw new TypeError('migrate is for work as a statechart. A function runs again against its journal: have it say and ask the same up to where it was.')
}

function checkExtendedCard(extendedCard: ExtendedCard | undefined, card: DescribedCard): void {
  if (extendedCard === undefined || typeof extendedCard === 'function') return
  if (!isObject(extendedCard)) throw new TypeError('extendedCard has to be what the card says to known callers, such as { skills: […] }, or a function of the caller that tells it.')
  describedCard({ ...card, ...extendedCard }, 'extendedCard')
}

function checkNegotiate(negotiate: unknown, work: AgentDefinition['work']): void {
  if (typeof negotiate === 'function') return
  if (!isNegotiation(negotiate)) {
    throw new TypeError('negotiate has to be a function that answers reply(…), accepted(…) or rejected(…), or a negotiation: negotiation({ terms: z.object({ … }), respond: … }).')
  }
  if (!work) throw new TypeError('A negotiation agrees upon terms for work: give the agent work, or a function as negotiate that answers reply(…).')
}

function checkMessages(messages: MessagePolicy, work: AgentDefinition['work']): void {
  if (!['reject', 'steer', 'queue'].includes(messages)) throw new TypeError(`messages has to be 'reject', 'steer' or 'queue', not ${messages}.`)
  if (messages === 'steer' && typeof work === 'function') throw new TypeError("messages: 'steer' needs work as a statechart; a function takes 'queue', and asks for its messages.")
}

function isMachineOrFunction(work: unknown): boolean {
  if (typeof work === 'function') return Object.prototype.toString.call(work) !== '[object GeneratorFunction]'
  return typeof work === 'object' && work !== null && isMachine(work as AnyActorLogic)
}
